"""A topic on one broker, and batches of transactions to put into it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.log import Appended, Origin
from tests.support.in_process import Client, InProcess, running

NOW_MS = time.time_ns() // 1_000_000
Scenario = Callable[[InProcess, Client, Partition], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await inside.create("t")
            await scenario(inside, await inside.connect(), inside.broker.partitions.leader("t", 0))

    asyncio.run(run())


def write(
    partition: Partition, producer: int, sequence: int = 0, *, epoch: int = 0, transactional: bool = True
) -> Appended:
    """A batch of two records."""
    batch = build_batch(
        [(None, b"v")] * 2,
        timestamp_ms=NOW_MS,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return partition.append(memoryview(batch))


def end(partition: Partition, producer: int, kind: ControlType) -> Appended:
    marker = build_marker(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW_MS)
    return partition.append(memoryview(marker), origin=Origin.COORDINATOR)
