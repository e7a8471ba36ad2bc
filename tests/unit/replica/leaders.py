"""Leaders that a test plays, and the fetchers that ask them."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.image.brokers import Brokers, Endpoint, Registration
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kavka_broker.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.following.fetcher import FetchSettings
from kavka_broker.replica.following.fetchers import Fetchers
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage import recovery
from tests.sim.loop import SimLoop
from tests.sim.node import SimClock
from tests.support.alone import Alone
from tests.support.sim_disk import SimDisk
from tests.support.waiting import play_simulated

NODE_ID = 9
SESSION_ID = 77
Answering = Callable[[Any], Any]


class Leader:
    """A peer that answers by hand: every request waits in `asked` until the test answers it."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[tuple[Any, asyncio.Future[Any]]] = asyncio.Queue()
        self.is_closed = False

    def ask(self, request: Any, response: Any, *, timeout_ms: float) -> Awaitable[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait((request, future))
        return future

    def close(self) -> None:
        self.is_closed = True

    async def next(self) -> tuple[Any, "asyncio.Future[Any]"]:
        async with asyncio.timeout(60):
            return await self.asked.get()


class Bench:
    """Fetchers over leaders that a test plays."""

    def __init__(self, loop: SimLoop) -> None:
        self.leaders: dict[int, Leader] = {1: Leader(), 2: Leader()}
        brokers = Brokers()
        brokers._by_id = {
            number: Registration(number, 1, bytes(16), {"X": Endpoint("X", "host", number)}, fenced=False)
            for number in self.leaders
        }
        self.clock = clock = SimClock(loop)
        self.timers = Timers(clock, loop)
        self.crashes: list[BaseException] = []
        peers = SimpleNamespace(to=lambda host, port, client_id: self.leaders[port])
        self.taken = list[tuple[int, int]]()
        self.throttled = set[int]()  # of an exceeded rate
        self.securing: asyncio.Future[None] | None = None  # of new logs
        settings = FetchSettings(
            NODE_ID,
            lambda: 5,
            took=self._took,
            held_back=self._held_back,
            when_secured=lambda log: self.securing,
            throttle_pause_ms=5,
        )
        self.fetchers = Fetchers(brokers, cast(Any, peers), settings, "X", clock, self.timers, self.crashes.append)
        self.disk = SimDisk()

    def _took(self, partition: Partition, size_bytes: int) -> bool:
        self.taken.append((partition.index, size_bytes))
        return partition.index in self.throttled

    def _held_back(self, partition: Partition) -> bool:
        return partition.index in self.throttled

    def partition(
        self, index: int, leader: int = 1, epoch: int = 0, config: LogConfig | None = None, around: Any = None
    ) -> Partition:
        log = recovery.open_log(self.disk, f"/data/t-{index}", config or LogConfig(), now_ms=0)
        log.topic_id = b"t" * 16
        state = PartitionState((leader, NODE_ID), (leader, NODE_ID), leader, epoch)
        return Partition("t", index, log, state, NODE_ID, self.clock, around or Alone())

    def close(self) -> None:
        self.timers.close()
        assert not self.crashes


def play(scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def run(loop: SimLoop) -> None:
        bench = Bench(loop)
        await scenario(bench)
        await bench.fetchers.stop()
        bench.close()

    play_simulated(run)


def answer(*parts: PartitionData, session_id: int = SESSION_ID, error: int = 0) -> FetchResponse:
    topics = [FetchableTopicResponse("t", b"t" * 16, list(parts))] if parts else []
    return FetchResponse(0, error, session_id, topics)


def records(base_offset: int, epoch: int = 0, value: bytes = b"v") -> memoryview:
    return memoryview(build_batch([(None, value)], base_offset=base_offset, leader_epoch=epoch, timestamp_ms=1))


def named(request: FetchRequest) -> dict[int, FetchPartition]:
    return {part.partition: part for topic in request.topics for part in topic.partitions}


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


async def opened(bench: Bench, *indexes: int) -> "tuple[list[Partition], asyncio.Future[Any]]":
    """Partitions of leader 1 with a session, and a fetch that waits at the leader."""
    partitions = [bench.partition(index) for index in indexes]
    for partition in partitions:
        bench.fetchers.follow(partition)
    request, reply = await bench.leaders[1].next()
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert set(named(request)) == set(indexes)
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (NODE_ID, 5)
    reply.set_result(answer(*(PartitionData(index) for index in indexes)))
    request, reply = await bench.leaders[1].next()
    assert (request.session_id, request.session_epoch, named(request)) == (SESSION_ID, 1, {})
    return partitions, reply
