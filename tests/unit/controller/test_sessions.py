"""Who lives, by the signs of life: sessions that end, connections that are lost, terms that begin."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from kavka_broker.controller.balancing import Balancing
from kavka_broker.controller.sessions import Sessions
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.heartbeats import Heartbeat, Standing
from kavka_broker.core.metadata.decide.registrations import Presence
from kavka_broker.core.metadata.image.brokers import UNFENCE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import BrokerRegistrationChangeRecord
from tests.support.brokers import epoch_of, propose, replicated, state
from tests.support.cluster import PROPERTIES, StillClock, enact, join, uuid

R = TypeVar("R")
SESSION_MS = 9000
INTERVAL_MS = 2000
OWN = 3  # the node of the controller


class HandTimers:
    """Timers that fire when the test moves the clock."""

    def __init__(self, clock: StillClock) -> None:
        self.clock = clock
        self.waiting: dict[HandTimer, None] = {}

    def after(self, delay_ms: float, callback: Callable[..., object], *arguments: object) -> "HandTimer":
        timer = HandTimer(self, self.clock.time_ms + delay_ms, callback, arguments)
        self.waiting[timer] = None
        return timer

    async def pass_by(self, time_ms: int, *, at_once: bool = False) -> None:
        """Let time pass for a running process or, `at_once`, for a process that was stopped meanwhile."""
        end_ms = self.clock.time_ms + time_ms
        if at_once:
            self.clock.time_ms = end_ms
        while due := [timer for timer in self.waiting if timer.due_ms <= end_ms]:
            timer = min(due, key=lambda timer: timer.due_ms)
            self.clock.time_ms = max(self.clock.time_ms, int(timer.due_ms))
            del self.waiting[timer]
            timer.callback(*timer.arguments)
            await settle()
        self.clock.time_ms = end_ms


class HandTimer:
    def __init__(
        self, timers: HandTimers, due_ms: float, callback: Callable[..., object], arguments: tuple[object, ...]
    ) -> None:
        self.timers, self.due_ms, self.callback, self.arguments = timers, due_ms, callback, arguments

    def cancel(self) -> None:
        self.timers.waiting.pop(self, None)


class HandController:
    """A controller that decides at once."""

    def __init__(self, metadata: Metadata) -> None:
        self.node_id = OWN
        self.metadata = metadata
        self.is_active = False
        self.refusals = 0  # decisions still to be refused
        self.after_decision: Callable[[Metadata], None] | None = None  # what is decided while the next is committed
        self.activated: list[Callable[[], None]] = []
        self.deactivated: list[Callable[[], None]] = []

    async def submit(self, decide: Callable[[Metadata, int], Decision[R]]) -> R:
        if not self.is_active:
            raise BrokerError(ErrorCode.NOT_CONTROLLER)
        if self.refusals:
            self.refusals -= 1
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT)
        result = enact(self.metadata, decide(self.metadata, 0))
        if self.after_decision is not None:
            self.after_decision(self.metadata)
            self.after_decision = None
        return result

    def lead(self, leads: bool = True) -> None:
        self.is_active = leads
        for listener in self.activated if leads else self.deactivated:
            listener()


class HandPeers:
    """The listeners that answer a probe, by broker: True, False (refused), None (silence)."""

    def __init__(self) -> None:
        self.answers: dict[int, list[bool | None]] = {}
        self.asked: list[int] = []

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        broker_id = int(host.rpartition("-")[2])
        self.asked.append(broker_id)
        answers = self.answers.get(broker_id, [True])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def to(self, host: str, port: int, *, client_id: str) -> Any:
        raise AssertionError("sessions only look")


class Connection:
    def __init__(self) -> None:
        self.on_lost: list[Callable[[], None]] = []

    def lose(self) -> None:
        for callback in self.on_lost:
            callback()


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


class Scene:
    def __init__(self, **settings: str) -> None:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        self.config = BrokerConfig.parse({**PROPERTIES, **dotted})
        self.metadata = replicated(1, 2, 3)
        self.clock = StillClock()
        self.timers = HandTimers(self.clock)
        self.controller = HandController(self.metadata)
        self.peers = HandPeers()
        timers: Any = self.timers
        self.sessions = Sessions(
            self.controller, self.config, self.clock, timers, self.peers, look_after_ms=(0, 0, 0), fence_again_ms=0
        )
        self.balancing = Balancing(self.controller, self.config, timers)
        self.sessions.start()
        self.balancing.start()

    async def beat(self, broker_id: int, connection: Connection | None = None, **asked: Any) -> Standing:
        command = Heartbeat(broker_id, epoch_of(self.metadata, broker_id), self.metadata.offset, **asked)
        return await self.sessions.heartbeat(command, connection)

    def alive(self) -> list[int]:
        return [broker.broker_id for broker in self.metadata.brokers.alive()]


def play(scenario: Callable[[Scene], Awaitable[None]], **settings: str) -> None:
    async def run() -> None:
        scene = Scene(**settings)
        scene.controller.lead()
        await settle()
        await scenario(scene)
        scene.controller.lead(leads=False)
        assert not scene.timers.waiting

    asyncio.run(run())


def test_a_session_ends_without_heartbeats() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.timers.pass_by(SESSION_MS - 1)
        assert scene.alive() == [1, 2, 3]
        await scene.beat(1)
        await scene.beat(OWN)
        await scene.timers.pass_by(2)
        assert scene.alive() == [1, 3]
        assert state(scene.metadata).isr == (1, 3)
        await scene.timers.pass_by(SESSION_MS)
        assert scene.alive() == []

    play(scenario)


def test_a_controller_that_is_too_busy_to_fence_tries_again() -> None:
    """Only a retry fences the broker: its session is over, and an ended process sends no heartbeats."""

    async def scenario(scene: Scene) -> None:
        await scene.beat(OWN)
        scene.controller.refusals = 3
        await scene.timers.pass_by(SESSION_MS + 1)
        await settle()
        assert scene.alive() == []

    play(scenario)


def test_a_fenced_broker_is_unfenced_by_its_next_heartbeat() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.timers.pass_by(SESSION_MS + 1)
        assert scene.alive() == []
        assert not (await scene.beat(2)).is_fenced
        assert scene.alive() == [2]
        await scene.timers.pass_by(SESSION_MS + 1)
        assert scene.alive() == []

    play(scenario)


def test_a_paused_controller_waits_for_the_heartbeats_in_its_sockets() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.timers.pass_by(60_000, at_once=True)
        assert scene.alive() == [1, 2, 3]
        await scene.beat(1)
        await scene.timers.pass_by(INTERVAL_MS + 1)
        assert scene.alive() == [1]

    play(scenario)


def test_a_broker_whose_process_has_ended_is_fenced_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        connection = Connection()
        await scene.beat(1, connection)
        scene.peers.answers[1] = [False]
        connection.lose()
        await settle()
        assert scene.alive() == [2, 3]
        assert state(scene.metadata).leader == 2

    play(scenario)


def test_a_brokers_listener_may_close_a_moment_after_its_connection() -> None:
    async def scenario(scene: Scene) -> None:
        connection = Connection()
        await scene.beat(1, connection)
        scene.peers.answers[1] = [True, None, False]
        connection.lose()
        await settle()
        assert scene.alive() == [2, 3]

    play(scenario)


@pytest.mark.parametrize("answer", [True, None])
def test_a_broker_that_answers_or_is_silent_keeps_its_session(answer: bool | None) -> None:
    async def scenario(scene: Scene) -> None:
        connection = Connection()
        await scene.beat(1, connection)
        scene.peers.answers[1] = [answer]
        connection.lose()
        await settle()
        assert scene.alive() == [1, 2, 3]

    play(scenario)


def test_the_loss_of_an_older_connection_is_ignored() -> None:
    async def scenario(scene: Scene) -> None:
        older, newer = Connection(), Connection()
        await scene.beat(1, older)
        await scene.beat(1, newer)
        scene.peers.answers[1] = [False]
        older.lose()
        await settle()
        assert scene.alive() == [1, 2, 3]

    play(scenario)


def test_the_loss_of_an_older_incarnations_connection_is_ignored() -> None:
    async def scenario(scene: Scene) -> None:
        connection = Connection()
        await scene.beat(1, connection)
        join(scene.metadata, 1, incarnation=1)
        await scene.beat(1, Connection())
        scene.peers.answers[1] = [False]
        connection.lose()
        await settle()
        assert scene.alive() == [1, 2, 3]

    play(scenario)


def test_a_new_term_probes_every_other_broker_once() -> None:
    async def run() -> None:
        scene = Scene()
        scene.peers.answers[2] = [False]
        scene.controller.lead()
        await settle()
        assert (sorted(scene.peers.asked), scene.alive()) == ([1, 2], [1, 3])
        scene.controller.lead(leads=False)
        with pytest.raises(BrokerError):
            await scene.beat(1)
        await scene.timers.pass_by(10 * SESSION_MS)
        assert scene.alive() == [1, 3]

    asyncio.run(run())


def test_a_stale_incarnation_has_no_session() -> None:
    async def scenario(scene: Scene) -> None:
        with pytest.raises(BrokerError):
            await scene.sessions.heartbeat(Heartbeat(9, 0, 0), None)
        assert scene.sessions.presence(None) is Presence.SILENT

    play(scenario)


def test_a_broker_is_heard_of_while_its_incarnation_has_a_session() -> None:
    async def scenario(scene: Scene) -> None:
        broker = scene.metadata.brokers.get(1)
        assert broker is not None
        connection = Connection()
        await scene.beat(1, connection)
        assert scene.sessions.presence(broker) is Presence.CONNECTED
        assert scene.sessions.presence(replace(broker, epoch=broker.epoch + 1)) is Presence.SILENT
        scene.peers.answers[1] = [False]
        connection.lose()
        await settle()
        assert scene.sessions.presence(broker) is Presence.SILENT, "nobody listens there: the id is free at once"
        await scene.beat(2)
        await scene.timers.pass_by(SESSION_MS + 1)
        assert scene.sessions.presence(scene.metadata.brokers.get(2)) is Presence.SILENT

    play(scenario)


def test_a_broker_whose_connection_was_lost_is_heard_until_it_is_connected_again() -> None:
    async def scenario(scene: Scene) -> None:
        broker = scene.metadata.brokers.get(1)
        first, second = Connection(), Connection()
        await scene.beat(1, first)
        first.lose()
        assert scene.sessions.presence(broker) is Presence.HEARD, "its successor need not wait for the session"
        await scene.beat(1, second)
        assert scene.sessions.presence(broker) is Presence.CONNECTED
        first.lose()
        assert scene.sessions.presence(broker) is Presence.CONNECTED, "by the other connection"
        assert not first.on_lost
        await settle()

    play(scenario)


def test_a_newly_active_controller_knows_of_no_connection() -> None:
    async def scenario(scene: Scene) -> None:
        scene.controller.lead(leads=False)
        scene.controller.lead()
        await settle()
        assert scene.sessions.presence(scene.metadata.brokers.get(1)) is Presence.HEARD
        await scene.beat(1, None)
        assert scene.sessions.presence(scene.metadata.brokers.get(1)) is Presence.CONNECTED, "it is in this process"

    play(scenario)


def test_a_repeated_refusal_is_new_only_once() -> None:
    sessions = Scene().sessions
    assert sessions.refused(1, uuid(1), "why")
    assert not sessions.refused(1, uuid(1), "why")
    assert sessions.refused(1, uuid(1), "another reason")
    assert sessions.refused(1, uuid(2), "another reason")


def test_a_broker_may_stop_when_the_others_have_seen_the_new_leaders() -> None:
    async def scenario(scene: Scene) -> None:
        for broker_id in (1, 2, 3):
            await scene.beat(broker_id)
        assert not (await scene.beat(1, wants_shutdown=True)).should_shut_down
        assert not (await scene.beat(1, wants_shutdown=True)).should_shut_down
        await scene.beat(2)
        assert not (await scene.beat(1, wants_shutdown=True)).should_shut_down
        await scene.beat(3)
        assert (await scene.beat(1, wants_shutdown=True)).should_shut_down
        assert scene.alive() == [2, 3]
        assert scene.sessions.presence(scene.metadata.brokers.get(1)) is Presence.SILENT

    play(scenario)


def test_a_fenced_broker_does_not_delay_the_stop_of_others() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.beat(1, wants_shutdown=True)
        await scene.beat(2)
        await scene.timers.pass_by(SESSION_MS - 1)
        await scene.beat(1, wants_shutdown=True)
        await scene.beat(2)
        await scene.timers.pass_by(2)
        assert (await scene.beat(1, wants_shutdown=True)).should_shut_down

    play(scenario)


def test_a_broker_that_comes_back_with_an_old_image_while_a_stop_is_committed_is_waited_for() -> None:
    """Seed 4012 of coordinators: a client that asks it would be sent to the broker that is gone."""

    async def scenario(scene: Scene) -> None:
        for broker_id in (1, 2, 3):
            await scene.beat(broker_id)
        await scene.beat(3, wants_fence=True)
        await scene.beat(1, wants_shutdown=True)
        await scene.beat(2)

        def comes_back(metadata: Metadata) -> None:
            metadata.replay(BrokerRegistrationChangeRecord(3, epoch_of(metadata, 3), fenced=UNFENCE))

        scene.controller.after_decision = comes_back
        assert not (await scene.beat(1, wants_shutdown=True)).should_shut_down
        assert 1 not in scene.alive()
        assert not (await scene.beat(1, wants_shutdown=True)).should_shut_down
        await scene.beat(3)
        assert (await scene.beat(1, wants_shutdown=True)).should_shut_down

    play(scenario)


def test_preferred_leaders_are_restored_periodically() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.beat(1, wants_fence=True)
        await scene.beat(1)
        propose(scene.metadata, 2, 3, 1)
        assert state(scene.metadata).leader == 2
        for _ in range(100):
            for broker_id in (1, 2, 3):
                await scene.beat(broker_id)
            await scene.timers.pass_by(100)
        assert state(scene.metadata).leader == 1

    play(scenario, leader_imbalance_check_interval_seconds="10")


def test_preferred_leaders_are_not_restored_if_turned_off() -> None:
    async def scenario(scene: Scene) -> None:
        assert len(scene.timers.waiting) == 3 + 1  # sessions, and the rescue of lost partitions

    play(scenario, auto_leader_rebalance_enable="false")
