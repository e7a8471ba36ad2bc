"""A blocking client for scripts: any request to any node, and what there is to see of a cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka_broker.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import build_batch, read_records
from tests.support.wire import Connection

SECONDS_MAX: Final = 90.0
HEADER_BYTES: Final = 4  # a correlation id, and with tagged fields one byte more

OF_ANOTHER_EPOCH: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)

R = TypeVar("R", bound=Message)
_correlation_ids = count(1)


def ask(address: tuple[str, int], request: Message, answer: type[R], version: int) -> R:
    """One request on a connection of its own. Raises OSError where no broker answers."""
    flexible = request.FLEXIBLE_FROM is not None and version >= request.FLEXIBLE_FROM
    assert request.API_KEY is not None
    with Connection(address, SECONDS_MAX) as connection:
        body = connection.request(request.API_KEY, version, bytes(encode(request, version)), flexible=flexible)
    if body is None:
        raise ConnectionResetError("closed without an answer")
    return decode(answer, version, memoryview(body)[HEADER_BYTES + flexible :])


@dataclass(frozen=True, slots=True)
class Asked:
    """The verbs of a script, on whichever node it names."""

    address: Callable[[int], tuple[str, int]]

    def create(self, via: int, topic: str, replicas: dict[int, list[int]], configs: dict[str, str]) -> str:
        assigned = [CreatableReplicaAssignment(partition, brokers) for partition, brokers in replicas.items()]
        wanted = [CreatableTopicConfig(name, value) for name, value in configs.items()]
        request = CreateTopicsRequest([CreatableTopic(topic, -1, -1, assigned, wanted)], 20_000)
        return name_of(ask(self.address(via), request, CreateTopicsResponse, 5).topics[0].error_code)

    def produce(self, via: int, topic: str, values: list[str], acks: int, timeout_ms: int) -> str:
        batch = build_batch([(None, value.encode()) for value in values])
        data = PartitionProduceData(0, memoryview(batch))
        request = ProduceRequest(None, acks, timeout_ms, [TopicProduceData(topic, partition_data=[data])])
        answer = ask(self.address(via), request, ProduceResponse, 9).responses[0].partition_responses[0]
        return f"{name_of(answer.error_code)} offset={answer.base_offset}"

    def fetch(self, via: int, topic: str, offset: int, epoch: int) -> str:
        wanted = FetchPartition(0, epoch, offset, partition_max_bytes=1_000_000)
        request = FetchRequest(max_wait_ms=300, min_bytes=1, topics=[FetchTopic(topic, partitions=[wanted])])
        answer = ask(self.address(via), request, FetchResponse, 12).responses[0].partitions[0]
        if answer.error_code:
            return name_of(answer.error_code)
        records = [
            f"{record.offset}:{(record.value or b'').decode()}"
            for _, batch in split_batches(whole(answer.records))
            for record in read_records(batch)
        ]
        return f"NONE high_watermark={answer.high_watermark} {' '.join(records)}".rstrip()

    def has_taken_over(self, via: int, topic: str, epoch: int, *, is_replica: bool) -> bool:
        """Whether a node does what it says of a partition: its metadata may be a moment ahead of its replicas."""
        wanted = FetchPartition(0, epoch, 0, partition_max_bytes=1_000)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic, partitions=[wanted])])
        code = ask(self.address(via), request, FetchResponse, 12).responses[0].partitions[0].error_code
        return code not in OF_ANOTHER_EPOCH if is_replica else code != ErrorCode.NONE

    def elect(self, via: int, topic: str, kind: int) -> str:
        request = ElectLeadersRequest(kind, [TopicPartitions(topic, [0])], 20_000)
        answer = ask(self.address(via), request, ElectLeadersResponse, 2)
        results = [result.error_code for each in answer.replica_election_results for result in each.partition_result]
        return " ".join(name_of(code) for code in (answer.error_code, *results))

    def reassign(self, via: int, topic: str, replicas: list[int] | None) -> str:
        wanted = ReassignableTopic(topic, [ReassignablePartition(0, replicas)])
        request = AlterPartitionReassignmentsRequest(20_000, topics=[wanted])
        answer = ask(self.address(via), request, AlterPartitionReassignmentsResponse, 0)
        results = [result.error_code for response in answer.responses for result in response.partitions]
        return " ".join(name_of(code) for code in (answer.error_code, *results))


def whole(records: object) -> memoryview:
    """The records of an answer in one piece."""
    return memoryview(records) if isinstance(records, bytes | bytearray | memoryview) else memoryview(b"")


def name_of(code: int) -> str:
    return ErrorCode(code).name


@dataclass(frozen=True, slots=True)
class Refusal:
    """A partition's error, and the broker that is said to lead instead: id, and addresses as (id, host, port)."""

    code: int
    leader: int
    addresses: list[tuple[int, str, int]]


def refused_produce(address: tuple[str, int], topic: str, version: int) -> Refusal:
    data = PartitionProduceData(0, memoryview(build_batch([(None, b"v")])))
    request = ProduceRequest(None, 1, 9_000, [TopicProduceData(topic, partition_data=[data])])
    answer = ask(address, request, ProduceResponse, version)
    (part,) = answer.responses[0].partition_responses
    addresses = [(endpoint.node_id, endpoint.host, endpoint.port) for endpoint in answer.node_endpoints]
    return Refusal(part.error_code, part.current_leader.leader_id, addresses)


def refused_fetch(address: tuple[str, int], topic: str, version: int) -> Refusal:
    (known,) = ask(address, MetadataRequest([MetadataRequestTopic(name=topic)]), MetadataResponse, 12).topics
    wanted = FetchPartition(0, -1, 0, partition_max_bytes=1_000)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic_id=known.topic_id, partitions=[wanted])])
    answer = ask(address, request, FetchResponse, version)
    (part,) = answer.responses[0].partitions
    addresses = [(endpoint.node_id, endpoint.host, endpoint.port) for endpoint in answer.node_endpoints]
    return Refusal(part.error_code, part.current_leader.leader_id, addresses)
