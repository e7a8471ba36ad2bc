"""What follows a refused batch that will come again is refused like the batch itself: producers keep their epoch."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.leading.partition import ACKS_ALL, Partition
from kavka_broker.runtime.clock import SystemClock
from tests.support.alone import Alone
from tests.support.in_process import running
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import NOW_MS, new_disk, open_log

DIRECTORY = b"d" * 16
VERSION = 13


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


def test_a_new_epoch_begins_anew() -> None:
    disk = new_disk()
    partition = leader(disk)
    assert send(partition, 0) is ErrorCode.NONE
    disk.space_bytes = 0
    assert send(partition, 1) is ErrorCode.KAFKA_STORAGE_ERROR
    disk.space_bytes = None
    assert send(partition, 0, epoch=1) is ErrorCode.NONE
    assert send(partition, 1, epoch=1) is ErrorCode.NONE


def test_batches_in_flight_behind_one_without_enough_replicas_are_refused_like_it() -> None:
    partition = leader(new_disk())
    partition.log.config = replace(partition.log.config, min_insync_replicas=2)
    both = partition.state._replace(replicas=(1, 2), isr=(1, 2), leader_epoch=1, directories=(DIRECTORY,) * 2)
    partition.apply(both)
    assert send(partition, 0) is ErrorCode.NONE
    partition.apply(both._replace(isr=(1,), partition_epoch=1))
    assert send(partition, 1) is ErrorCode.NOT_ENOUGH_REPLICAS
    partition.apply(both._replace(partition_epoch=2))
    assert send(partition, 2) is ErrorCode.NOT_ENOUGH_REPLICAS, "an answer out of order costs the epoch"
    assert [send(partition, sequence) for sequence in range(3)] == [ErrorCode.NONE] * 3
    assert partition.log.log_end_offset == 3


def test_a_leader_that_was_none_a_moment_before_refuses_what_is_in_flight_behind_a_refused_batch(
    tmp_path: Path,
) -> None:
    """librdkafka sends all that it has no answer for under a new epoch once one of its batches is out of order: here
    the first, which is in the log.
    """

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            topic_id = await inside.create("t")
            client = await inside.connect()
            partition = inside.broker.partitions.leader("t", 0)
            here = partition.state._replace(
                replicas=(1, 2), isr=(1, 2), leader_epoch=1, directories=(partition.state.directories[0], DIRECTORY)
            )

            def request(sequence: int) -> None:
                batch = build_batch([(None, b"v")], producer_id=7, producer_epoch=0, base_sequence=sequence)
                data = TopicProduceData("t", topic_id, [PartitionProduceData(0, batch)])
                client.send(ProduceRequest(None, ACKS_ALL, 60_000, [data]), VERSION)

            async def answer() -> tuple[ErrorCode, int]:
                response = await client.receive(ProduceResponse, VERSION)
                found = response.responses[0].partition_responses[0]
                return ErrorCode(found.error_code), found.base_offset

            partition.apply(here)
            request(0)
            while not partition.log.log_end_offset:  # a thread syncs the id of the new log first
                await inside.heard()
            partition.apply(here._replace(leader=2, leader_epoch=2))
            request(1)
            refused = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
            assert [await answer(), await answer()] == [refused, refused]
            partition.apply(here._replace(isr=(1,), leader_epoch=3))
            request(2)
            assert await answer() == refused, "an answer out of order costs the epoch"
            for sequence in range(3):
                request(sequence)
                assert await answer() == (ErrorCode.NONE, sequence)
            assert partition.log.log_end_offset == 3

    asyncio.run(scenario())


def test_a_broker_alone_goes_on_reading_and_refusing(tmp_path: Path) -> None:
    """Nobody could lead instead: to step aside would take the readers' leader away as well."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            replicas = inside.broker.replicas
            told: list[None] = []
            replicas.refusal_listeners.append(lambda: told.append(None))
            replicas.partitions.leader("t", 0).refused(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))
            assert not told

    asyncio.run(scenario())
