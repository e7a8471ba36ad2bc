"""A leader without room refuses what follows a batch like the batch itself, so that producers keep their epoch."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.runtime.clock import SystemClock
from tests.support.alone import Alone
from tests.support.in_process import running
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import NOW_MS, new_disk, open_log

DIRECTORY = b"d" * 16


def leader(disk: SimDisk) -> Partition:
    state = PartitionState(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, directories=(DIRECTORY,))
    return Partition("t", 0, open_log(disk), state, 1, SystemClock(), Alone())


def send(partition: Partition, sequence: int, *, epoch: int = 0) -> ErrorCode:
    batch = build_batch(
        [(None, b"v" * 50)], timestamp_ms=NOW_MS, producer_id=7, producer_epoch=epoch, base_sequence=sequence
    )
    try:
        partition.append(memoryview(batch))
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize("first", [0, 1])
def test_batches_under_way_behind_a_refused_one_are_refused_like_it_until_it_comes_again(first: int) -> None:
    disk = new_disk()
    partition = leader(disk)
    for sequence in range(first):
        assert send(partition, sequence) is ErrorCode.NONE
    disk.space_bytes = 0
    assert send(partition, first) is ErrorCode.KAFKA_STORAGE_ERROR
    disk.space_bytes = None
    assert send(partition, first + 1) is ErrorCode.KAFKA_STORAGE_ERROR, "an answer out of order costs the epoch"
    assert send(partition, first + 2) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [send(partition, first + ahead) for ahead in range(3)] == [ErrorCode.NONE] * 3
    assert send(partition, first + 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.log.log_end_offset == first + 3


def test_a_new_epoch_or_another_leadership_begins_anew() -> None:
    disk = new_disk()
    partition = leader(disk)
    assert send(partition, 0) is ErrorCode.NONE
    disk.space_bytes = 0
    assert send(partition, 1) is ErrorCode.KAFKA_STORAGE_ERROR
    disk.space_bytes = None
    partition.apply(partition.state._replace(leader_epoch=1))
    assert send(partition, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    disk.space_bytes = 0
    assert send(partition, 1) is ErrorCode.KAFKA_STORAGE_ERROR
    disk.space_bytes = None
    assert send(partition, 0, epoch=1) is ErrorCode.NONE
    assert send(partition, 1, epoch=1) is ErrorCode.NONE


def test_a_broker_alone_goes_on_reading_and_refusing(tmp_path: Path) -> None:
    """Nobody could lead instead: to step aside would take the readers' leader away as well."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            replicas = inside.broker.replicas
            told: list[None] = []
            replicas.refusal_listeners.append(lambda: told.append(None))
            replicas.leader("t", 0).refused(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))
            assert not told

    asyncio.run(scenario())
