"""WriteTxnMarkers and DescribeProducers: a coordinator on another broker ends transactions here."""

import asyncio
from pathlib import Path

from kavka_broker.core.decision import Decision
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kavka_broker.protocol.messages.describe_producers_response import DescribeProducersResponse, PartitionResponse
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kavka_broker.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.control import ControlType, read_marker
from kavka_broker.replica.leading.partition import Partition
from tests.support.in_process import Client, InProcess
from tests.support.waiting import until
from tests.unit.api.transactions import play, write

PRODUCER = 7
EPOCHS_RISE = 2


async def mark(
    client: Client,
    *,
    commits: bool = False,
    epoch: int = 0,
    coordinator: int = 0,
    transaction_version: int = 0,
    topic: str = "t",
) -> int:
    topics = [WritableTxnMarkerTopic(topic, [0])]
    marker = WritableTxnMarker(PRODUCER, epoch, commits, topics, coordinator, transaction_version)
    answer = await client.call(WriteTxnMarkersRequest([marker]), WriteTxnMarkersResponse, 2)
    assert answer.markers[0].producer_id == PRODUCER
    assert answer.markers[0].topics[0].name == topic
    return answer.markers[0].topics[0].partitions[0].error_code


def markers(partition: Partition) -> list[tuple[ControlType, int, int]]:
    """Kind, producer epoch and coordinator epoch of every marker in the log."""
    found = []
    for segment in partition.log.segments:
        for header, batch in split_batches(segment.file.read(0, segment.size_bytes)):
            marker = read_marker(batch) if header.is_control else None
            if marker is not None:
                found.append((marker.kind, header.producer_epoch, marker.coordinator_epoch))
    return found


def test_markers_end_transactions(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, PRODUCER)
        assert partition.last_stable_offset == 0
        assert await mark(client, coordinator=3) == 0
        assert partition.last_stable_offset == 3
        write(partition, PRODUCER, epoch=1)
        assert await mark(client, commits=True, epoch=2, coordinator=4, transaction_version=EPOCHS_RISE) == 0
        assert partition.last_stable_offset == 6
        assert markers(partition) == [(ControlType.ABORT, 0, 3), (ControlType.COMMIT, 2, 4)]
        assert [entry.first_offset for entry in partition.log.reader.aborted_between(0, 6)] == [0]

    play(tmp_path, scenario)


def test_outdated_markers_are_refused(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, PRODUCER, epoch=5)
        assert await mark(client, epoch=4) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await mark(client, epoch=5, transaction_version=EPOCHS_RISE) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await mark(client, epoch=6, coordinator=2, transaction_version=EPOCHS_RISE) == 0
        assert await mark(client, epoch=6, coordinator=1) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert await mark(client, topic="gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(markers(partition)) == 1

    play(tmp_path, scenario)


def test_a_repeated_marker_is_appended_and_ends_no_transaction(tmp_path: Path) -> None:
    """A new coordinator sends the marker again, and waits until it is accepted."""

    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, PRODUCER)
        for _ in range(2):
            assert await mark(client, epoch=1, transaction_version=EPOCHS_RISE) == 0
        assert len(markers(partition)) == 2
        assert len(partition.log.reader.aborted_between(0, 9)) == 1
        assert partition.last_stable_offset == 4

    play(tmp_path, scenario)


async def loaded(inside: InProcess) -> None:
    async with asyncio.timeout(60):
        while inside.broker.groups.is_loading:
            await asyncio.sleep(0)


def test_offsets_of_a_transaction_count_when_it_is_committed(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        await inside.create(OFFSETS_TOPIC)
        await loaded(inside)
        shard = inside.broker.groups.shard("g")
        errors, waiting = shard.staging.stage("g", (PRODUCER, 0), [Commit("t", 0, 5)])
        assert (errors, waiting) == ([0], None)
        assert not shard.offsets("g")
        assert await mark(client, commits=True, topic=OFFSETS_TOPIC) == 0
        assert shard.offsets("g")["t"][0].offset == 5, "when the marker is answered"

    play(tmp_path, scenario)


def test_producers_are_described(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        async def described(topic: str) -> PartitionResponse:
            request = DescribeProducersRequest([TopicRequest(topic, [0])])
            answer = await client.call(request, DescribeProducersResponse, 0)
            return answer.topics[0].partitions[0]

        write(partition, PRODUCER, epoch=3)
        (known,) = (await described("t")).active_producers
        assert (known.producer_id, known.producer_epoch, known.last_sequence) == (PRODUCER, 3, 1)
        assert (known.coordinator_epoch, known.current_txn_start_offset) == (-1, 0)
        assert await mark(client, epoch=3, coordinator=9) == 0
        (known,) = (await described("t")).active_producers
        assert (known.coordinator_epoch, known.current_txn_start_offset) == (9, -1)
        assert (await described("gone")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(tmp_path, scenario)


def test_a_follower_describes_what_its_own_log_knows(tmp_path: Path) -> None:
    """`kafka-transactions find-hanging` asks a broker for all that it has a replica of."""

    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, PRODUCER, epoch=3)
        topic = inside.broker.metadata.topics.get("t")
        assert topic is not None
        others = PartitionChangeRecord(0, topic.topic_id, leader=-1, isr=[1])
        await inside.broker.active.submit(lambda *_: Decision([others], None))
        await until(lambda: not partition.is_leader)
        request = DescribeProducersRequest([TopicRequest("t", [0])])
        (described,) = (await client.call(request, DescribeProducersResponse, 0)).topics[0].partitions
        assert described.error_code == ErrorCode.NONE
        assert [known.producer_id for known in described.active_producers] == [PRODUCER]

    play(tmp_path, scenario)
