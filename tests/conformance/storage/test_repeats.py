"""Partitions that one request names more than once: Kavka and Apache Kafka read the same out of it."""

import time
from collections.abc import Iterator

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kavka_broker.protocol.messages.delete_records_response import DeleteRecordsResponse
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOGETHER, APART = (2,), (1, 1)  # how often each of the request's topics names the partition
NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
Told = tuple[str, int, int, int]  # topic, partition, error, offset


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both")) as pair:
        pair.ask(CreateTopicsRequest([CreatableTopic("t", 2, 1), CreatableTopic("u", 2, 1)]), CreateTopicsResponse)
        for server in pair:
            while any(error in NOT_YET for name in "tu" for _, _, error, _ in listed(server, name, (1,))):
                time.sleep(0.01)
        yield pair


def produced(server: Server, topic: str, named: tuple[int, ...]) -> list[Told]:
    """Batches of one record, two, three; what was appended to both partitions."""
    sizes = iter(range(1, 10))

    def data(index: int) -> PartitionProduceData:
        return PartitionProduceData(index, memoryview(build_batch([(None, b"v")] * next(sizes))))

    topics = [TopicProduceData(topic, partition_data=[data(0) for _ in range(times)]) for times in named]
    topics[-1].partition_data.append(data(1))
    answer = ask(server.address, ProduceRequest(None, -1, 9_000, topics), ProduceResponse, 9)
    told = [
        (response.name, part.index, part.error_code, part.base_offset)
        for response in answer.responses
        for part in response.partition_responses
    ]
    return sorted([*told, *listed(server, topic, (1,))])


def listed(server: Server, topic: str, named: tuple[int, ...]) -> list[Told]:
    topics = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, -1)] * times) for times in named]
    topics[-1].partitions = [*topics[-1].partitions, ListOffsetsPartition(1, -1, -1)]
    answer = ask(server.address, ListOffsetsRequest(-1, 0, topics), ListOffsetsResponse, 9)
    return sorted(
        (one.name, part.partition_index, part.error_code, part.offset)
        for one in answer.topics
        for part in one.partitions
    )


def trimmed(server: Server, topic: str, named: tuple[int, ...]) -> list[Told]:
    """Trimmed to 2, and to 1."""
    offsets = iter((2, 1))
    topics = [
        DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, next(offsets)) for _ in range(times)]) for times in named
    ]
    answer = ask(server.address, DeleteRecordsRequest(topics, 9_000), DeleteRecordsResponse, 2)
    return sorted(
        (one.name, part.partition_index, part.error_code, part.low_watermark)
        for one in answer.topics
        for part in one.partitions
    )


@pytest.mark.parametrize(("topic", "named"), [("t", TOGETHER), ("u", APART)])
def test_a_partition_named_twice_is_answered_alike(both: Both, topic: str, named: tuple[int, ...]) -> None:
    for verb in (produced, listed, trimmed):
        ours, theirs = (verb(server, topic, named) for server in both)
        assert ours == theirs, verb.__name__
