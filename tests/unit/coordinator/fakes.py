"""A partition whose commits the test decides on, and a shard over it."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import GroupState
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.loop.slices import Slices
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import Record, read_records
from kavka_broker.storage.log import Appended, Origin
from kavka_broker.storage.log_reading import Chunk

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS


class Clock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> float:
        return float(self.ms)


@dataclass(slots=True)
class FakeLog:
    """A log in memory: a list of batches."""

    batches: list[bytes] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    config: LogConfig = field(default_factory=LogConfig)
    securing: asyncio.Future[None] | None = None

    def read(self, offset: int, bytes_max: int, *, upper_offset: int, at_least_one: bool) -> Chunk:
        assert at_least_one
        for batch in self.batches:
            ((header, _),) = split_batches(batch)
            if offset <= header.last_offset < upper_offset:
                return Chunk([memoryview(batch)], len(batch))
        return Chunk([], 0)


class FakePartition:
    """A partition that commits at once or, with `holds` set, when `commit` is called."""

    topic, index, is_leader, leader_epoch = "__consumer_offsets", 0, True, 3

    def __init__(self) -> None:
        self.log = FakeLog()
        self.holds = False
        self.refuses: ErrorCode | None = None
        self.committed = 0  # the offset behind what is
        self.waiting: list[asyncio.Future[None]] = []

    def append(self, batch: memoryview, _acks: int, _origin: Origin) -> Appended:
        if self.refuses is not None:
            raise BrokerError(self.refuses)
        if len(batch) > self.log.config.max_message_bytes:
            raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE)
        count, base_offset = len(read_records(batch)), self.log.log_end_offset
        self.log.batches.append(base_offset.to_bytes(8, "big") + bytes(batch[8:]))
        self.log.log_end_offset += count
        return Appended(base_offset, self.log.log_end_offset - 1)

    def read(self, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool) -> Chunk:
        return self.log.read(offset, bytes_max, upper_offset=upper_offset, at_least_one=at_least_one)

    def when_committed(self, offset: int) -> asyncio.Future[None] | None:
        if not self.holds or offset < self.committed:
            return None
        self.waiting.append(asyncio.get_running_loop().create_future())
        return self.waiting[-1]

    async def commit(self, error: Exception | None = None) -> None:
        """Commit the held appends, or fail them with an error."""
        waiting, self.waiting = self.waiting, []
        self.committed = self.log.log_end_offset
        for future in waiting:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        await asyncio.sleep(0)

    def records(self) -> list[Record]:
        return [record for batch in self.log.batches for record in read_records(batch)]


def pacing(clock: Clock, timers: Timers) -> Pacing:
    slices = Slices()
    return Pacing(clock, timers, slices, RequestThreads(slices, threads_max=1))


class World:
    """A serving shard, and the topics t and u. To be made inside a running loop."""

    def __init__(self, **settings: Any) -> None:
        self.partition = FakePartition()
        self.clock = Clock()
        self.timers = Timers(self.clock, asyncio.get_running_loop())
        self.topics = Topics()
        self.removals = DeletedTopics(self.topics)
        for name in "tu":
            self.make_topic(name)
        self.shard = Shard(
            self.partition,
            self.removals,
            GroupSettings(**settings),
            pacing(self.clock, self.timers),
            commit_timeout_ms=5_000,
        )
        self.shard.open()

    def make_topic(self, name: str) -> None:
        self.happens(TopicRecord(name, name.encode() * 16))

    def delete_topic(self, name: str) -> None:
        self.happens(RemoveTopicRecord(name.encode() * 16))

    def happens(self, record: Message) -> None:
        self.topics.replay(record)
        self.removals.apply([record])

    def advance(self, by_ms: int) -> None:
        self.clock.ms += by_ms
        self.timers.fire_due()

    def token(self) -> asyncio.Future[Message]:
        return asyncio.get_running_loop().create_future()

    @staticmethod
    def answer(token: asyncio.Future[Message]) -> Message:
        assert token.done(), "not answered"
        return token.result()


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scenario()

    asyncio.run(run())


def commit(world: World, group: str, offset: int, topic: str = "t", retention_ms: int = -1) -> Any:
    return world.shard.commit(group, -1, "", None, [Commit(topic, 0, offset)], retention_ms, 9)


def offset(world: World, group: str, topic: str = "t") -> int | None:
    value = world.shard.image.offsets(group).get(topic, {}).get(0)
    return None if value is None else value.offset


def finish(work: Generator[None, None, int] | Iterator[None]) -> int | None:
    """The result of the work, after all its slices."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return cast(int | None, end.value)


def expire(world: World) -> int | None:
    """The number of records that the upkeep has written."""
    return finish(world.shard.upkeep.expire())


def state(world: World) -> GroupState | None:
    group = world.shard.image.groups.get("g")
    return None if group is None else group.state
