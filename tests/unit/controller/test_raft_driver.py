"""The hands of the quorum's rules: what they do when a question cannot be asked, and when everything stops."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.controller.ports import Ports
from kavka_broker.controller.raft_driver import RaftDriver
from kavka_broker.core.raft.effects import Effect, NodeAddress, Persist, Send
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.roles import NEVER_MS
from kavka_broker.loop.timers import Timers
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.messages.vote_response import VoteResponse
from tests.support.cluster import StillClock

LEADER = 2


class Rules:
    """Rules that note the events they are given."""

    deadline_ms = NEVER_MS
    leader_id = LEADER

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def tick(self, now_ms: int) -> list[Effect]:
        return []

    def answered(self, send: Send, response: Message | None, now_ms: int) -> list[Effect]:
        self.heard.append((send.request.NAME, response))
        return []

    def leader_lost(self, now_ms: int) -> list[Effect]:
        self.heard.append("lost")
        return []

    def vote(self, request: VoteRequest, now_ms: int) -> tuple[VoteResponse, list[Effect]]:
        return VoteResponse(), [Persist(QuorumState(1))]


class Failing:
    """Peers that cannot be asked."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def to(self, host: str, port: int, *, client_id: str) -> "Failing":
        return self

    async def ask(self, request: Message, response: Any, *, timeout_ms: float) -> Any:
        raise self.error

    def close(self) -> None:
        """Do nothing."""


class Scene:
    def __init__(self, error: Exception | None = None) -> None:
        rules: Any = Rules()
        self.rules: Rules = rules
        self.crashes: list[BaseException] = []
        self.disk = asyncio.Event()
        clock = StillClock()
        anything: Any = None
        peers: Any = Failing(error or Unreachable("gone"))
        self.runner = RaftDriver(
            rules,
            anything,
            anything,
            Ports(clock, peers=peers, run_blocking=self.write, crash=self.crashes.append),
            timers=Timers(clock, asyncio.get_running_loop()),
            request_timeout_ms=1_000,
            client_id="t",
        )

    async def write(self, work: Callable[[], None]) -> None:
        await self.disk.wait()

    async def ask(self, request: Message) -> list[Any]:
        send = Send(NodeAddress(LEADER, "two", 9), request)
        self.runner.happen(lambda _: [send])
        for _ in range(10):
            await asyncio.sleep(0)
        heard: list[Any] = self.rules.heard
        return heard


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_request_that_cannot_be_sent_has_no_answer() -> None:
    async def scenario() -> None:
        scene = Scene(ValueError("a mistake"))
        assert await scene.ask(VoteRequest()) == [("VoteRequest", None)]
        assert scene.crashes == []

    play(scenario)


def test_a_failed_assertion_while_asking_a_peer_stops_the_process() -> None:
    async def scenario() -> None:
        scene = Scene(InvariantViolation("ours"))
        assert await scene.ask(VoteRequest()) == []
        assert [str(crash) for crash in scene.crashes] == ["ours"]

    play(scenario)


@pytest.mark.parametrize("request_", [FetchRequest(), FetchSnapshotRequest()], ids=lambda request: request.NAME)
def test_a_leader_with_a_broken_connection_is_lost_for_every_kind_of_fetch(request_: Message) -> None:
    async def scenario() -> None:
        scene = Scene()
        assert await scene.ask(request_) == [(request_.NAME, None), "lost"]
        assert scene.crashes == []

    play(scenario)


@pytest.mark.parametrize("is_failure", [True, False])
def test_no_request_waits_for_a_stopped_runner(is_failure: bool) -> None:
    async def scenario() -> None:
        scene = Scene()
        # The first request waits for the disk, the second one for the first.
        waiting = [scene.runner.serve(scene.rules.vote, VoteRequest()) for _ in range(2)]
        if is_failure:
            scene.runner.fail(OSError("gone"))
        else:
            scene.disk.set()
            await scene.runner.stop()
        for future in waiting:
            with pytest.raises(BrokerError) as refusal:
                await future
            assert refusal.value.code is ErrorCode.NOT_CONTROLLER
        scene.disk.set()

    play(scenario)


def test_a_stopping_runner_logs_nothing_for_lost_requests() -> None:
    """The client has disconnected: its refusal is not read, and the loop must not report it."""
    complaints: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        scene = Scene()
        scene.runner.serve(scene.rules.vote, VoteRequest())
        scene.runner.fail(OSError("gone"))
        scene.disk.set()
        await asyncio.sleep(0)
        gc.collect()

    play(scenario)
    assert not complaints


def test_waiting_for_answered_requests_takes_a_turn_of_the_loop() -> None:
    """Two answers in one turn are enough: both tasks are done, but stay in `_sends` until the next turn."""

    async def scenario() -> None:
        scene = Scene()
        looks = 0

        def monotonic_ms() -> float:
            nonlocal looks
            looks += 1
            assert looks < 100, "it waits without waiting"
            return 0.0

        send = Send(NodeAddress(LEADER, "two", 9), VoteRequest())
        scene.runner.happen(lambda _: [send, send])
        await asyncio.sleep(0)
        clock: Any = SimpleNamespace(monotonic_ms=monotonic_ms)
        scene.runner.clock = clock
        await scene.runner.sent(1_000)
        assert not scene.runner.sends

    play(scenario)
