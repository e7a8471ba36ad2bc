"""`max.decompressed.message.bytes`, beside Apache Kafka 4.4: the largest record that a compressed batch may hold."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Final

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import build_batch
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.java, pytest.mark.slow]

KEY: Final = "max.decompressed.message.bytes"
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
SECONDS_MAX: Final = 60.0
NOT_YET: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
BODY_BYTES: Final = 508  # of a record with 1 byte of key and 500 of value
BATCH: Final = [(b"k", b"v"), (b"k", bytes(500)), (b"k", b"v")]
AT_MS: Final = 1_700_000_000_000
LARGEST: Final = 2**31 - 9
#: By the names of their topics.
TOPICS: Final = {
    "fits": {KEY: str(BODY_BYTES)},
    "tight": {KEY: str(BODY_BYTES - 1)},
    "tight-compacted": {KEY: str(BODY_BYTES - 1), "cleanup.policy": "compact"},
    "tight-unpacked": {KEY: str(BODY_BYTES - 1), "compression.type": "uncompressed"},
    "tight-packed": {KEY: str(BODY_BYTES - 1), "compression.type": "zstd"},
    "unset": {},
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("largest"), newest=True) as pair:
        topics = [
            CreatableTopic(name, 1, 1, configs=[CreatableTopicConfig(*each) for each in configs.items()])
            for name, configs in TOPICS.items()
        ]
        for answer in pair.ask(CreateTopicsRequest(topics), CreateTopicsResponse):
            assert {one.error_code for one in answer.topics} == {0}
        yield pair


def produce(server: Server, topic: str, codec: Compression) -> tuple[ErrorCode, list[int]]:
    """The error of a broker that leads the partition, and the records that it names."""
    batch = bytes(build_batch(BATCH, timestamp_ms=AT_MS, compression=codec))
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        answer = ask(server.address, ProduceRequest(None, -1, 9_000, [data]), ProduceResponse, 12)
        (found,) = answer.responses[0].partition_responses
        code = ErrorCode(found.error_code)
        if code not in NOT_YET or time.monotonic() > deadline:
            return code, [one.batch_index for one in found.record_errors]


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name)
@pytest.mark.parametrize("topic", TOPICS)
def test_both_refuse_the_same_batches(both: Both, topic: str, codec: Compression) -> None:
    ours, theirs = (produce(server, topic, codec) for server in both)
    assert ours == theirs
    is_refused = topic.startswith("tight") and codec is not Compression.NONE
    assert ours[0] is (ErrorCode.INVALID_RECORD if is_refused else ErrorCode.NONE)


def alter(server: Server, kind: int, name: str, value: object, *, validate_only: bool = False) -> ErrorCode:
    """The answer to a change; with None to its removal."""
    change = AlterableConfig(KEY, DELETE) if value is None else AlterableConfig(KEY, SET, str(value))
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, [change])], validate_only)
    (answer,) = ask(server.address, request, IncrementalAlterConfigsResponse).responses
    return ErrorCode(answer.error_code)


@pytest.mark.parametrize("value", [-1, 0, 1, LARGEST, LARGEST + 1, "many"])
@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "unset"), (BROKER, ""), (BROKER, "1")])
def test_both_take_the_same_bounds(both: Both, kind: int, name: str, value: object) -> None:
    ours, theirs = (alter(server, kind, name, value, validate_only=True) for server in both)
    assert ours == theirs
    assert (ours is ErrorCode.NONE) is (value in (1, LARGEST))


def test_both_take_the_bound_of_all_topics_while_they_run(both: Both) -> None:
    found = []
    for server in both:
        for value in (1, None):
            assert alter(server, BROKER, "", value) is ErrorCode.NONE
            until_outside(partial(has_value, server, "unset", str(value or LARGEST)))
            found.append(produce(server, "unset", Compression.LZ4)[0])
    assert found == 2 * [ErrorCode.INVALID_RECORD, ErrorCode.NONE]


def described(server: Server, kind: int, name: str) -> tuple[object, ...]:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [KEY])], True)
    (answer,) = ask(server.address, request, DescribeConfigsResponse).results
    (one,) = answer.configs
    synonyms = [(said.source, said.name, said.value) for said in one.synonyms]
    return one.value, one.config_source, one.read_only, one.config_type, synonyms


def has_value(server: Server, topic: str, value: str) -> bool:
    return described(server, TOPIC, topic)[0] == value


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "tight"), (TOPIC, "unset"), (BROKER, "1")])
def test_both_describe_the_same(both: Both, kind: int, name: str) -> None:
    ours, theirs = (described(server, kind, name) for server in both)
    assert ours == theirs


def test_what_is_stored_is_found_though_it_is_larger_than_the_topic_takes_now(both: Both) -> None:
    """Apache Kafka refuses such a search by time; ours keeps nothing of the records that it passes."""
    both.ask(CreateTopicsRequest([CreatableTopic("lowered", 1, 1)]), CreateTopicsResponse)
    found = []
    for server in both:
        assert produce(server, "lowered", Compression.GZIP)[0] is ErrorCode.NONE
        assert alter(server, TOPIC, "lowered", 1) is ErrorCode.NONE
        until_outside(partial(has_value, server, "lowered", "1"))
        asked = ListOffsetsTopic("lowered", [ListOffsetsPartition(0, -1, AT_MS)])
        answer = ask(server.address, ListOffsetsRequest(-1, 0, [asked]), ListOffsetsResponse, 7)
        (partition,) = answer.topics[0].partitions
        found.append((ErrorCode(partition.error_code), partition.offset))
    assert found[0] == (ErrorCode.NONE, 0)
    assert found[1][0] is not ErrorCode.NONE
