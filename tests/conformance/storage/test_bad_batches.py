"""Batches that no good producer sends: Kavka and Apache Kafka judge the records in them alike."""

import time
from collections.abc import Iterator

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from kavka_broker.protocol.records.batch import HEADER, HEADER_BYTES, PREFIX_BYTES, set_crc
from kavka_broker.protocol.records.compression import Compression, compress
from kavka_broker.protocol.records.record import Record, build_batch
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server

pytestmark = [pytest.mark.java, pytest.mark.slow]

NOW_MS = time.time_ns() // 1_000_000
FAR_MS = NOW_MS + 10**9
TOPICS = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "repacked": {"compression.type": "lz4"},
}
#: Batches with which each test of records is made; packing again is a matter of offsets alone.
JUDGED = ("plain", "compacted", "stamped")
RECORDS = [Record(index, NOW_MS + index, b"k", b"v%d" % index) for index in range(3)]


def packed(records: list[Record]) -> bytes:
    return bytes(build_batch(records))[HEADER_BYTES:]


ONE = packed(RECORDS[:1])


def batch(
    codec: Compression,
    body: bytes,
    count: int,
    *,
    max_timestamp_ms: int = NOW_MS + 2,
) -> bytes:
    """A batch whose header says `count` records, whatever its body is."""
    fields = list(HEADER.unpack_from(build_batch(RECORDS)))
    content = compress(codec, body)
    fields[1], fields[5], fields[6] = len(content) + HEADER_BYTES - PREFIX_BYTES, int(codec), count - 1
    fields[8], fields[12] = max_timestamp_ms, count
    made = bytearray(HEADER.pack(*fields) + content)
    set_crc(made)
    return bytes(made)


GOOD = packed(RECORDS)
BODIES: dict[str, tuple[bytes, int]] = {
    "good": (GOOD, 3),
    "zeroes": (bytes(60), 3),
    "sevens": (b"\x7f" * 60, 3),
    "nothing": (b"", 3),
    "fewer than said": (GOOD, 4),
    "more than said": (GOOD, 2),
    "a byte too many": (GOOD + b"\0", 3),
    "cut": (GOOD[:-2], 3),
    "a length and a byte too long": (bytes([ONE[0] + 2]) + ONE[1:] + b"\0", 1),
    "a key beyond its record": (ONE[:4] + b"\x7e" + ONE[5:], 1),
    "a key of -2": (ONE[:4] + b"\x03" + ONE[5:], 1),
    "-1 headers": (ONE[:-1] + b"\x01", 1),
    "5 headers": (ONE[:-1] + b"\x0a", 1),
    "attributes": (ONE[:1] + b"\x07" + ONE[2:], 1),
    "a time out of bounds": (packed([RECORDS[0], Record(1, FAR_MS, b"k", b"v")]), 2),
    "no keys": (packed([Record(index, NOW_MS, None, b"v") for index in range(3)]), 3),
}
CODECS = (Compression.NONE, Compression.GZIP, Compression.ZSTD)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    topics = [
        CreatableTopic(name, 1, 1, configs=[CreatableTopicConfig(*one) for one in config.items()])
        for name, config in TOPICS.items()
    ]
    with running_both(tmp_path_factory.mktemp("both")) as pair:
        pair.ask(CreateTopicsRequest(topics), CreateTopicsResponse)
        yield pair


def produce(server: Server, topic: str, made: bytes, version: int = 9) -> PartitionProduceResponse:
    """Produce once the topic is known to be led."""
    request = ProduceRequest(
        None, -1, 9000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, memoryview(made))])]
    )
    while True:
        answer = ask(server.address, request, ProduceResponse, version).responses[0].partition_responses[0]
        if answer.error_code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            return answer


@pytest.mark.parametrize("topic", JUDGED)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("name", BODIES)
def test_records_are_judged_alike(both: Both, topic: str, codec: Compression, name: str) -> None:
    ours, theirs = (produce(server, topic, batch(codec, *BODIES[name])) for server in both)
    assert (ours.error_code, [error.batch_index for error in ours.record_errors]) == (
        theirs.error_code,
        [error.batch_index for error in theirs.record_errors],
    )


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("said_ms", [-1, NOW_MS, NOW_MS + 600_000, FAR_MS])
def test_a_false_largest_timestamp_hides_nothing(both: Both, codec: Compression, said_ms: int) -> None:
    times = (NOW_MS, NOW_MS + 50, NOW_MS + 52)
    body = packed([Record(index, timestamp, b"k", b"v") for index, timestamp in enumerate(times)])
    for server in both:
        made = batch(codec, body, 3, max_timestamp_ms=said_ms)
        assert produce(server, "plain", made).error_code == ErrorCode.NONE
        assert asked(server, NOW_MS + 52)[0] >= 0, "the last record, by its time"
        assert asked(server, -3)[1] == NOW_MS + 52, "the largest time of all"


OFFSETS = ([0, 1, 2], [1, 2, 3], [0, 0, 1], [0, 2, 1], [0, 1, 3], [0, -1, 2], [2, 1, 0], [5], [-1])


def numbered(offsets: list[int], codec: Compression, last_ms: int = NOW_MS) -> bytes:
    """Records that say these offset deltas, the last of this time."""
    base = 100  # deltas below zero are written as well
    records = [Record(base + offset, NOW_MS, b"k", b"v") for offset in offsets]
    records[-1] = records[-1]._replace(timestamp=last_ms)
    body = bytes(build_batch(records, base_offset=base))[HEADER_BYTES:]
    return batch(codec, body, len(offsets), max_timestamp_ms=last_ms)


@pytest.mark.parametrize("topic", JUDGED)
@pytest.mark.parametrize("codec", list(Compression)[1:], ids=lambda codec: codec.name)
@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
def test_offsets_in_compressed_records_go_up_by_one(
    both: Both, topic: str, codec: Compression, offsets: list[int]
) -> None:
    """Apache Kafka finds them, and stumbles as it wants to mend them: UNKNOWN_SERVER_ERROR. Both errors are final."""
    ours, theirs = (produce(server, topic, numbered(offsets, codec)) for server in both)
    refused = (ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert (ours.error_code, theirs.error_code) == (refused if offsets != [0, 1, 2] else (0, 0))


@pytest.mark.parametrize("topic", ["plain", "stamped"])
@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
def test_offsets_in_plain_records_are_the_leaders(both: Both, topic: str, offsets: list[int]) -> None:
    ours, theirs = (produce(server, topic, numbered(offsets, Compression.NONE)) for server in both)
    assert (ours.error_code, theirs.error_code) == (ErrorCode.NONE, ErrorCode.NONE)


@pytest.mark.parametrize("offsets", OFFSETS[1:], ids=str)
def test_offsets_are_judged_here_where_apache_kafka_numbers_records_or_leaves_them(
    both: Both, offsets: list[int]
) -> None:
    """A wrong one would lead a search by time or the cleaner astray."""
    for topic, codec in (
        ("repacked", Compression.NONE),
        ("repacked", Compression.GZIP),
        ("compacted", Compression.NONE),
    ):
        ours, theirs = (produce(server, topic, numbered(offsets, codec)) for server in both)
        assert (ours.error_code, theirs.error_code) == (ErrorCode.INVALID_RECORD, ErrorCode.NONE), (topic, codec)


def test_a_time_out_of_bounds_is_told_before_an_offset(both: Both) -> None:
    made = numbered([0, 5, 2], Compression.GZIP, FAR_MS)
    ours, theirs = (produce(server, "plain", made) for server in both)
    assert ours.error_code == theirs.error_code == ErrorCode.INVALID_TIMESTAMP
    assert (
        [error.batch_index for error in ours.record_errors]
        == [error.batch_index for error in theirs.record_errors]
        == [2]
    )


def asked(server: Server, timestamp: int) -> tuple[int, int]:
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("plain", [ListOffsetsPartition(0, -1, timestamp)])])
    answer = ask(server.address, request, ListOffsetsResponse, 7).topics[0].partitions[0]
    return answer.offset, answer.timestamp


def test_garbage_of_long_numbers_is_an_invalid_record_here(both: Both) -> None:
    """Apache Kafka says UNKNOWN_SERVER_ERROR, since its reader does not expect it. Both are final."""
    ours, theirs = (produce(server, "plain", batch(Compression.NONE, b"\xff" * 60, 3)) for server in both)
    assert (ours.error_code, theirs.error_code) == (ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("version", [3, 6, 7, 9])
def test_zstd_is_for_versions_that_know_it(both: Both, version: int) -> None:
    ours, theirs = (produce(server, "plain", batch(Compression.ZSTD, GOOD, 3), version) for server in both)
    assert ours.error_code == theirs.error_code


def test_a_duplicate_keeps_the_time_of_its_first_append(both: Both) -> None:
    for server in both:
        made = bytes(build_batch(RECORDS, producer_id=77, producer_epoch=0, base_sequence=0))
        first, again = (produce(server, "stamped", made) for _ in range(2))
        assert (first.error_code, again.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        assert first.base_offset == again.base_offset
        assert first.log_append_time_ms == again.log_append_time_ms > 0
