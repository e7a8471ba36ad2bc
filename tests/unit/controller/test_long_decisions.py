"""Decisions about very many partitions: made by a thread, one at a time, and published in few calls."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from kavka_broker.controller import publishing
from kavka_broker.controller.controller import Controller
from kavka_broker.controller.metadata_batches import metadata_batch
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import Created, CreateTopic, Defaults, create_topics, delete_topic
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.records.batch import BatchHeader, read_header
from tests.support.cluster import Machine, join, register_broker, uuid
from tests.support.in_process import InProcess, following, running
from tests.support.turns import Turns
from tests.support.waiting import until

MANY = 1_000
#: The calls that each further partition may add to a turn.
CALLS_PER_PARTITION_MAX = 1.5
#: A checkpoint asks all logs that have changed in one turn: how many those are is up to the disk.
SELDOM = {"replica.high.watermark.checkpoint.interval.ms": "3600000"}


class Slow(Machine):
    """A machine whose threads take as long as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()

    async def run_blocking(self, work: Callable[[], None]) -> None:
        if work.__qualname__.startswith(Controller.__name__):
            self.has_begun.set()
            await self.may_end.wait()
        await super().run_blocking(work)


def play(scenario: Callable[[Slow, Controller], Awaitable[None]]) -> None:
    async def run() -> None:
        machine = Slow()
        machine.format()
        async with machine.leading() as controller:
            await register_broker(controller, machine.config)
            await scenario(machine, controller)

    asyncio.run(run())


def creating(name: str, partitions: int) -> Callable[[Metadata, int], Decision[list[Created | BrokerError]]]:
    command = CreateTopic(name, uuid(len(name)), partitions, 1)
    return lambda metadata, _: create_topics(metadata, [command], Defaults())


def test_no_other_decision_is_made_while_a_thread_decides() -> None:
    async def scenario(machine: Slow, controller: Controller) -> None:
        machine.may_end.clear()
        long = asyncio.create_task(controller.submit_long(creating("long", MANY)))
        await machine.has_begun.wait()
        short = asyncio.create_task(controller.submit(creating("a", 1)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not short.done()
        assert not len(controller.metadata.topics)
        machine.may_end.set()
        await asyncio.gather(long, short)
        assert [topic.name for topic in controller.metadata.topics] == ["long", "a"]
        assert controller.metadata.topics.partition_count == MANY + 1
        assert controller.quorum.log.end_offset == controller.metadata.next_offset

    play(scenario)


def test_no_decision_is_made_while_the_thread_of_a_lost_client_runs() -> None:
    async def scenario(machine: Slow, controller: Controller) -> None:
        machine.may_end.clear()
        long = asyncio.create_task(controller.submit_long(creating("long", MANY)))
        await machine.has_begun.wait()
        long.cancel()
        short = asyncio.create_task(controller.submit(creating("a", 1)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not len(controller.metadata.topics), "the thread looks at the image"
        machine.may_end.set()
        await asyncio.gather(long, short, return_exceptions=True)
        assert long.cancelled()
        assert [topic.name for topic in controller.metadata.topics] == ["a"]

    play(scenario)


def test_a_short_decision_does_not_wait_for_queued_long_decisions() -> None:
    async def scenario(machine: Slow, controller: Controller) -> None:
        machine.may_end.clear()
        long = [asyncio.create_task(controller.submit_long(creating("x" * (10 + at), MANY))) for at in range(3)]
        await machine.has_begun.wait()
        short = [asyncio.create_task(controller.submit(creating("a" * (1 + at), 1))) for at in range(3)]
        for _ in range(10):
            await asyncio.sleep(0)
        machine.may_end.set()
        await asyncio.gather(*long, *short)
        assert [len(topic.name) for topic in controller.metadata.topics] == [10, 1, 2, 3, 11, 12]

    play(scenario)


def test_a_refused_long_decision_does_not_affect_others() -> None:
    async def scenario(_: Slow, controller: Controller) -> None:
        def refuse(_: Metadata, __: int) -> Decision[None]:
            raise BrokerError(ErrorCode.POLICY_VIOLATION)

        before = controller.quorum.log.end_offset
        with pytest.raises(BrokerError):
            await controller.submit_long(refuse)
        assert controller.quorum.log.end_offset == before
        await controller.submit(creating("a", 1))

    play(scenario)


def test_a_long_decision_writes_nothing_after_the_lead_is_lost() -> None:
    async def scenario(machine: Slow, controller: Controller) -> None:
        machine.may_end.clear()
        long = asyncio.create_task(controller.submit_long(creating("long", MANY)))
        await machine.has_begun.wait()
        before = controller.quorum.log.end_offset
        controller.lose_lead()
        machine.may_end.set()
        with pytest.raises(BrokerError) as refused:
            await long
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert controller.quorum.log.end_offset == before

    play(scenario)


async def most_calls(turns: Turns, inside: InProcess, name: str, count: int) -> list[int]:
    """The most calls in one turn of creating a topic of so many partitions, doubling them, and deleting it."""
    client, most = await inside.connect(), list[int]()
    turns.begin()
    made = await client.call(CreateTopicsRequest([CreatableTopic(name, count, 1)]), CreateTopicsResponse, 7)
    most.append(turns.most)
    turns.begin()
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, 2 * count, None)])
    grown = await client.call(request, CreatePartitionsResponse, 3)
    most.append(turns.most)
    assert (made.topics[0].error_code, grown.results[0].error_code) == (0, 0)
    topic = inside.broker.metadata.topics.get(name)
    assert topic is not None
    turns.begin()
    await inside.broker.active.submit(lambda *_: delete_topic(topic))
    await inside.broker.replicas.departures.stop()
    return [*most, turns.most]


def test_no_turn_does_more_than_a_few_calls_for_a_partition(tmp_path: Path) -> None:
    async def scenario() -> None:
        turns = Turns()
        async with running(tmp_path, SELDOM) as inside:
            with turns.counting():
                await most_calls(turns, inside, "first", 300)
                few = await most_calls(turns, inside, "few", 500)
                many = await most_calls(turns, inside, "many", 1_500)
        assert [calls for calls in map(int.__sub__, many, few) if calls > CALLS_PER_PARTITION_MAX * MANY] == []

    asyncio.run(scenario())


def test_a_follower_reads_a_long_batch_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_thread: list[int] = []
    read_in_thread = publishing.Publisher._read_in_thread

    async def noting(publisher: publishing.Publisher, data: bytes, offset: int) -> None:
        by_thread.append(len(data))
        await read_in_thread(publisher, data, offset)

    monkeypatch.setattr(publishing.Publisher, "_read_in_thread", noting)

    async def scenario() -> None:
        async with running(tmp_path / "1") as first, following(tmp_path / "2", first) as second:
            await first.create("small")
            await first.create("large", MANY)
            await until(lambda: second.broker.metadata.topics.partition_count >= MANY + 1)
            assert len(by_thread) == 1
            assert by_thread[0] > publishing.AT_ONCE_BYTES_MAX

    asyncio.run(scenario())


class DamagedLog:
    """A log of one long batch, a byte of which has changed."""

    def __init__(self, count: int) -> None:
        topic = creating("large", count)(enacted(), 0)
        self.batch = metadata_batch(topic.records, base_offset=1, leader_epoch=1, now_ms=0)
        self.batch[-1] ^= 1

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        yield read_header(self.batch), memoryview(self.batch)


class ShortLog:
    """A log of one short batch, if it can be read. Counts the reads."""

    def __init__(self, *, is_readable: bool) -> None:
        topic = creating("small", 1)(enacted(), 0)
        self.batch = metadata_batch(topic.records, base_offset=enacted().next_offset, leader_epoch=1, now_ms=0)
        self.is_readable = is_readable
        self.reads = 0

    def batches(self, _: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        self.reads += 1
        if not self.is_readable:
            raise ProtocolViolation("a batch of length -1")
        yield read_header(self.batch), memoryview(self.batch)


def enacted() -> Metadata:
    """An image with one broker."""
    metadata = Metadata()
    join(metadata, 1)
    return metadata


async def published(log: DamagedLog | ShortLog) -> tuple[Metadata, list[Exception]]:
    """The image once the batch of the log is published or has failed, and the failures."""
    machine, failures = Machine(), list[Exception]()
    metadata = enacted()
    target = metadata.next_offset + 1
    publisher = publishing.Publisher(
        machine.config,
        cast(MetadataLog, log),
        metadata,
        Ports(machine.clock, run_blocking=machine.run_blocking),
        published=lambda: None,
        failed=failures.append,
    )
    publisher.advance(target)
    async with asyncio.timeout(60):
        while not failures and metadata.next_offset < target:
            await asyncio.sleep(0)
    return metadata, failures


@pytest.mark.parametrize("log", [DamagedLog(MANY), ShortLog(is_readable=False)])
def test_an_unreadable_batch_is_reported_with_its_directory(log: DamagedLog | ShortLog) -> None:
    _, failures = asyncio.run(published(log))
    assert [type(failure) for failure in failures] == [CannotStart]


def test_a_short_batch_is_read_once() -> None:
    log = ShortLog(is_readable=True)
    metadata, failures = asyncio.run(published(log))
    assert (metadata.topics.partition_count, failures, log.reads) == (1, [], 1)
