"""Syncs beside the loop: one for all that was appended before it began, turns, and what cannot be synced."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.leading import log_syncs
from kavka_broker.replica.leading.log_syncs import LogSyncs
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.storage import recovery
from tests.support.alone import Alone
from tests.support.sim_disk import Operation, SimDisk
from tests.support.waiting import until


class HangingDisk(SimDisk):
    """Does not come back from a sync of what lies under `hangs_under`, until it `goes_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs_under = "nowhere"
        self.hanging = 0
        self.goes_on = threading.Event()

    def meet(self, operation: Operation, *paths: str) -> None:
        if operation == "sync" and paths[0].startswith(self.hangs_under):
            self.hanging += 1
            assert self.goes_on.wait(60)
        super().meet(operation, *paths)


class Here(Alone):
    """A broker of its own, whose syncs wait for the test."""

    def __init__(self) -> None:
        self.crashes = list[BaseException]()
        self.syncs = LogSyncs(self.crashes.append)
        self.synced = list[int]()  # partitions, in the order of their syncs
        self.may_sync = threading.Event()
        self.disk = HangingDisk()

    def sync(self, partition: Partition) -> None:
        self.syncs.soon(partition)

    def partition(self, index: int = 0, directory: str = "/data") -> Partition:
        log = recovery.open_log(self.disk, f"{directory}/t-{index}", LogConfig(flush_messages=1), now_ms=0)
        log.durability.secure()
        sync_records = log.durability.sync_records

        def held() -> None:
            assert self.may_sync.wait(60)
            self.synced.append(index)
            sync_records()

        log.durability.sync_records = held  # type: ignore[method-assign]
        return Partition("t", index, log, PartitionState((1,), (1,), 1, 0), 1, SystemClock(), self)


def append(partition: Partition) -> asyncio.Future[None]:
    appended = partition.append(memoryview(build_batch([(None, b"v")], timestamp_ms=0)))
    waiting = partition.when_committed(appended.last_offset)
    assert waiting is not None
    return waiting


def play(scenario: Callable[[Here], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        here = Here()
        await asyncio.wait_for(scenario(here), 60)
        await here.syncs.stop()
        assert not here.crashes

    asyncio.run(run())


async def all_of(*waiting: Awaitable[None]) -> None:
    await asyncio.gather(*waiting)


def test_one_sync_serves_all_that_was_appended_before_it_began() -> None:
    async def scenario(here: Here) -> None:
        partition = here.partition()
        waiting = [append(partition) for _ in range(50)]
        await asyncio.sleep(0)
        assert partition.high_watermark == 0
        here.may_sync.set()
        await all_of(*waiting)
        assert partition.high_watermark == 50
        assert len(here.synced) <= 2

    play(scenario)


def test_no_more_than_a_few_syncs_run_at_once_and_each_log_has_its_turn() -> None:
    async def scenario(here: Here) -> None:
        partitions = [here.partition(index) for index in range(3 * log_syncs.SYNCS_PER_DIRECTORY_MAX)]
        waiting = [append(one) for one in partitions]
        await asyncio.sleep(0)
        (line,) = here.syncs.lines.values()
        assert len(line.workers) == log_syncs.SYNCS_PER_DIRECTORY_MAX
        again = [append(one) for one in partitions[: log_syncs.SYNCS_PER_DIRECTORY_MAX]]
        here.may_sync.set()
        await all_of(*waiting, *again)
        assert set(here.synced[: len(partitions)]) == set(range(len(partitions)))

    play(scenario)


def test_who_comes_as_the_last_worker_leaves_is_synced() -> None:
    """Its task is over then, and the loop has not said so yet."""

    async def scenario(here: Here) -> None:
        here.syncs = LogSyncs(here.crashes.append, per_directory_max=1)
        here.may_sync.set()
        first, other = here.partition(0), here.partition(1)
        waiting = list[asyncio.Future[None]]()

        def answered(_: asyncio.Future[None]) -> None:
            waiting.append(append(other))

        append(first).add_done_callback(answered)
        await until(lambda: waiting and waiting[0].done())
        assert other.high_watermark == 1

    play(scenario)


def test_what_could_not_be_tried_is_tried_again() -> None:
    async def scenario(here: Here) -> None:
        here.may_sync.set()
        partition = here.partition()
        sync_records, failures = (
            partition.log.durability.sync_records,
            [BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no file")],
        )

        def failing() -> None:
            if failures:
                raise failures.pop()
            sync_records()

        partition.log.durability.sync_records = failing  # type: ignore[method-assign]
        await append(partition)
        assert (failures, partition.high_watermark) == ([], 1)

    play(scenario)


def test_a_failed_sync_answers_nobody_and_is_not_repeated() -> None:
    """The directory's failure does: its partitions are given up, and whoever waits is told."""

    async def scenario(here: Here) -> None:
        here.may_sync.set()
        partition = here.partition()
        here.disk.fail_syncs = True
        waiting = append(partition)
        await here.syncs.stop()
        assert (waiting.done(), here.synced, partition.log.is_failed) == (False, [0], True)
        partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
        error = waiting.exception()
        assert isinstance(error, BrokerError)
        assert error.code == ErrorCode.KAFKA_STORAGE_ERROR

    play(scenario)


def test_a_deleted_log_is_synced_no_more() -> None:
    async def scenario(here: Here) -> None:
        partition = here.partition()
        waiting = append(partition)
        await asyncio.sleep(0)
        partition.log.abandon()
        partition.close(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        here.may_sync.set()
        await here.syncs.stop()
        assert isinstance(waiting.exception(), BrokerError)
        assert len(here.synced) == 1

    play(scenario)


def test_a_directory_that_hangs_holds_up_no_other() -> None:
    """As many logs of it wait as there may be syncs, and more."""

    async def scenario(here: Here) -> None:
        here.may_sync.set()
        slow = [here.partition(index, "/slow") for index in range(2 * log_syncs.SYNCS_PER_DIRECTORY_MAX)]
        good = here.partition(100)
        here.disk.hangs_under = "/slow/"
        waiting = [append(one) for one in slow]
        async with asyncio.timeout(60):
            await until(lambda: here.disk.hanging >= log_syncs.SYNCS_PER_DIRECTORY_MAX)
            for _ in range(3):
                await append(good)
        assert good.high_watermark == 3
        assert not any(one.done() for one in waiting)
        here.disk.goes_on.set()
        await all_of(*waiting)

    play(scenario)


def test_a_log_that_takes_the_place_of_one_that_hangs_is_synced() -> None:
    """A copy in another directory does, at the end of a move."""

    async def scenario(here: Here) -> None:
        here.may_sync.set()
        partition, other = here.partition(0, "/slow"), here.partition(0)
        here.disk.hangs_under = "/slow/"
        append(partition)
        async with asyncio.timeout(60):
            await until(lambda: here.disk.hanging)
            partition.log.abandon()
            partition.log = other.log
            await append(partition)
        here.disk.goes_on.set()
        assert partition.high_watermark == 1

    play(scenario)
