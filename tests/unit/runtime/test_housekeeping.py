"""The broker's own chores go on, whatever becomes of one of them."""

import asyncio
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.runtime.housekeeping import Chore, Housekeeping
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import MetaProperties, write_meta_properties
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.retention import delete_expired
from tests.sim.loop import SimLoop
from tests.support.in_process import running
from tests.support.sim_disk import Operation, SimDisk
from tests.support.waiting import play_simulated, until
from tests.unit.storage.support import NOW_MS, SMALL, append, fill


def keeper(crash: Callable[[BaseException], None]) -> Housekeeping:
    nothing: Any = SimpleNamespace()
    return Housekeeping(nothing, nothing, nothing, nothing, nothing, crash, nothing)


def run_chore(error: Exception, times: int) -> tuple[int, list[BaseException]]:
    """How often a chore that fails is done, of `times`, and what crashed."""
    crashes: list[BaseException] = []
    done = 0

    async def scenario() -> None:
        nonlocal done
        enough = asyncio.Event()

        async def work() -> None:
            nonlocal done
            done += 1
            if done == times:
                enough.set()
            raise error

        def crash(problem: BaseException) -> None:
            crashes.append(problem)
            enough.set()

        keeping = keeper(crash)
        task = asyncio.create_task(keeping.repeat(Chore("test", 1, work)))
        async with asyncio.timeout(60):
            await enough.wait()
        task.cancel()

    asyncio.run(scenario())
    return done, crashes


@pytest.mark.parametrize(
    "error", [OSError(28, "full"), BrokerError(ErrorCode.KAFKA_STORAGE_ERROR), ValueError("of ours"), KeyError("too")]
)
def test_a_chore_that_fails_is_done_again(error: Exception) -> None:
    assert run_chore(error, 3) == (3, [])


def test_a_broken_invariant_is_not_carried_on_with() -> None:
    error = InvariantViolation("broken")
    assert run_chore(error, 3) == (1, [error])


@pytest.mark.parametrize(
    ("first_ms", "delays_s"), [(None, [300, 300, 300]), (30_000, [30, 300, 300]), (900_000, [300, 300, 300])]
)
def test_a_chore_may_come_sooner_after_the_start(first_ms: int | None, delays_s: list[float]) -> None:
    """Of a broker that restarts each few minutes nothing would ever be deleted (log.initial.task.delay.ms)."""
    at_s: list[float] = []

    async def scenario(loop: SimLoop) -> None:
        began_s = loop.time()

        async def work() -> None:
            at_s.append(loop.time() - began_s)
            if len(at_s) == len(delays_s):
                raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await keeper(raised).repeat(Chore("test", 300_000, work, first_ms))

    play_simulated(scenario)
    assert at_s == pytest.approx(list(accumulate(delays_s)))


LOGS = 20


def raised(problem: BaseException) -> None:
    raise problem


class CountingDisk(SimDisk):
    """Counts the files that are written."""

    def __init__(self) -> None:
        super().__init__(now_ms=NOW_MS)
        self.written = 0

    def meet(self, operation: Operation, *paths: str) -> None:
        self.written += operation == "write"
        super().meet(operation, *paths)


class Hosted:
    """Logs with a high watermark each, and who keeps house for them."""

    def __init__(self) -> None:
        self.disk = CountingDisk()
        self.disk.make_directory("/data")
        write_meta_properties(self.disk, "/data", MetaProperties("cluster", 1, b"d" * 16))
        self.manager = LogManager.open(self.disk, ["/data"], node_id=1, threads_max=1)
        self.manager.load(lambda topic: SMALL, NOW_MS)
        self.high_watermarks: dict[tuple[str, int], int] = {}
        for index in range(LOGS):
            self.create(index)
        nothing: Any = SimpleNamespace()
        replicas: Any = SimpleNamespace(get=self.partition)
        self.keeping = Housekeeping(nothing, self.manager, replicas, nothing, nothing, raised, nothing)

    def create(self, index: int) -> None:
        self.manager.create("t", index, bytes([1]) * 16, SMALL)
        self.high_watermarks["t", index] = 0

    def partition(self, topic: str, index: int) -> SimpleNamespace:
        return SimpleNamespace(high_watermark=self.high_watermarks[topic, index])

    def checkpoint(self) -> None:
        asyncio.run(self.keeping.checkpoint())

    def commit(self, log: Log, high_watermark: int) -> None:
        self.high_watermarks[log.name] = high_watermark


def test_only_logs_that_have_changed_are_looked_at() -> None:
    hosted = Hosted()
    hosted.checkpoint()
    assert len(hosted.manager.changed) == LOGS  # their topic's id is not synced yet, which the checkpoint is to say
    hosted.manager.secure()
    hosted.checkpoint()
    assert hosted.manager.changed == []
    log = hosted.manager.get("t", 3)
    assert log is not None
    append(log)
    assert hosted.manager.changed == [log]
    hosted.commit(log, 1)
    hosted.checkpoint()
    before = hosted.disk.written
    hosted.checkpoint()
    assert hosted.disk.written == before
    log.flush()
    hosted.checkpoint()
    assert hosted.disk.written > before
    assert hosted.manager.changed == []


def play(random: Random, hosted: Hosted) -> None:
    log = random.choice(list(hosted.manager))
    match random.choice(
        ["append", "append", "append", "commit", "flush", "cut", "trim", "retain", "restart", "delete", "secure"]
    ):
        case "append":
            fill(log, random.randint(1, 8))
        case "commit":
            hosted.commit(log, log.log_end_offset)
        case "flush":
            log.flush()
        case "cut":
            log.truncate_to(random.randint(log.log_start_offset, log.log_end_offset))
        case "trim":
            log.advance_start(random.randint(log.log_start_offset, log.log_end_offset))
        case "retain":
            delete_expired(log, NOW_MS + 10**12, hosted.high_watermarks[log.name])
            log.segments.discarded.remove()
        case "restart":
            log.start_at(log.log_end_offset + 3)
        case "secure":
            hosted.manager.secure()
        case "delete":
            hosted.manager.delete(*log.name)
            hosted.create(log.name.partition)
    hosted.commit(log, min(hosted.high_watermarks[log.name], log.log_end_offset))


@pytest.mark.parametrize("seed", range(10))
def test_checkpoints_say_how_all_logs_are(seed: int) -> None:
    random, hosted = Random(seed), Hosted()
    for _ in range(60):
        for _ in range(random.randint(0, 3)):
            play(random, hosted)
        hosted.checkpoint()
        (directory,) = hosted.manager.directories
        for log in hosted.manager:
            assert directory.recovery_points.get(log.name) == (
                log.recovery_point if log.durability.is_secured else None
            )
            assert directory.high_watermarks.get(log.name, 0) == hosted.high_watermarks[log.name]
            start = directory.log_starts.get(log.name, log.segments[0].base_offset)
            assert start == log.log_start_offset
    hosted.manager.secure()
    for log in hosted.manager:
        log.flush()
        hosted.commit(log, log.log_end_offset)
        log.segments.discarded.remove()
    hosted.checkpoint()
    hosted.checkpoint()
    assert hosted.manager.changed == []


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "10"}
        async with running(tmp_path, settings) as inside:
            await inside.create("t")
            partition = inside.broker.partitions.leader("t", 0)
            batch = build_batch([(None, b"v")], timestamp_ms=1, producer_id=1, producer_epoch=0, base_sequence=0)
            partition.append(memoryview(batch))
            await until(lambda: not len(partition.log.producers))

    asyncio.run(scenario())
