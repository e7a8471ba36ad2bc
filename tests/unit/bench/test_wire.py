"""The bench's own few bytes of protocol, against the broker's codec: two hands wrote them apart."""

import struct

import crc32c
import pytest

from bench import wire
from kavka_broker.protocol import codec
from kavka_broker.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.alter_client_quotas_response import EntryData as EntryResponse
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.protocol.messages.produce_response import ProduceResponse

HEADER_BYTES = 4 + wire.HEADER.size + len(wire.CLIENT_ID)


def test_a_produce_frame_is_what_the_codec_reads() -> None:
    frame = wire.produce_frame("topic", 3, b"value", -1)
    assert struct.unpack_from(">ihh", frame) == (len(frame) - 4, wire.PRODUCE, wire.PRODUCE_VERSION)
    request = codec.decode(ProduceRequest, wire.PRODUCE_VERSION, frame[HEADER_BYTES:])
    assert (request.acks, request.transactional_id) == (-1, None)
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    assert (topic.name, partition.index) == ("topic", 3)
    assert b"value" in bytes(partition.records)


def test_a_quota_frame_is_what_the_codec_reads() -> None:
    frame = wire.client_quota_frame("etl", "producer_byte_rate", 1024)
    version = wire.ALTER_CLIENT_QUOTAS_VERSION
    (entry,) = codec.decode(AlterClientQuotasRequest, version, frame[HEADER_BYTES:]).entries
    assert [(part.entity_type, part.entity_name) for part in entry.entity] == [("client-id", "etl")]
    assert [(op.key, op.value, op.remove) for op in entry.ops] == [("producer_byte_rate", 1024.0, False)]
    answer = AlterClientQuotasResponse(7, [EntryResponse(42)])
    assert wire.client_quota_error(memoryview(codec.encode(answer, version))) == 42


def test_throttle_times_are_those_of_the_codec() -> None:
    produced = codec.encode(ProduceResponse([], 1234), wire.PRODUCE_VERSION)
    fetched = codec.encode(FetchResponse(567), wire.FETCH_VERSION)
    assert wire.produce_throttle_ms(memoryview(produced)) == 1234
    assert wire.fetch_throttle_ms(memoryview(fetched)) == 567
    assert not wire.has_topics(memoryview(fetched))


def test_a_batch_has_its_length_and_crc() -> None:
    batch = wire.one_record_batch(b"x" * 100, 1_700_000_000_000)
    assert int.from_bytes(batch[8:12], "big") == len(batch) - 12
    assert int.from_bytes(batch[17:21], "big") == crc32c.crc32c(batch[21:])


def test_a_fetch_frame_is_what_the_codec_reads() -> None:
    frame = wire.fetch_frame("topic", 3, 42, wait_ms=7)
    request = codec.decode(FetchRequest, wire.FETCH_VERSION, frame[HEADER_BYTES:])
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (request.max_wait_ms, request.min_bytes, topic.topic) == (7, 1, "topic")
    assert (partition.partition, partition.fetch_offset) == (3, 42)


def test_errors_of_the_broker_are_raised() -> None:
    answer = struct.pack(">ih5siihqqq", 1, 5, b"topic", 1, 0, 6, -1, -1, -1)
    with pytest.raises(wire.WireError, match="error 6"):
        wire.produced_offset(memoryview(answer), "topic")


def test_an_answer_tells_its_offset() -> None:
    answer = struct.pack(">ih5siihqqq", 1, 5, b"topic", 1, 0, 0, 99, -1, 0)
    assert wire.produced_offset(memoryview(answer), "topic") == 99


def test_an_answer_tells_its_bytes() -> None:
    answer = struct.pack(">iih5siihqqii", 0, 1, 5, b"topic", 1, 0, 0, 100, 100, -1, 61)
    assert wire.fetched_bytes(memoryview(answer), "topic") == 61


def test_metadata_tells_how_many_are_in_sync() -> None:
    partitions = [
        MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1, 3]),
        MetadataResponsePartition(partition_index=1, leader_id=-1, replica_nodes=[2, 3], isr_nodes=[2]),
    ]
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(1, "host", 9092, "rack"), MetadataResponseBroker(2, "host", 9093)],
        topics=[MetadataResponseTopic(name="t", partitions=partitions)],
    )
    assert wire.in_sync_counts(memoryview(codec.encode(answer, wire.METADATA_VERSION))) == [2, 0]
    asked = codec.decode(MetadataRequest, wire.METADATA_VERSION, wire.metadata_frame("t")[HEADER_BYTES:])
    assert [topic.name for topic in asked.topics or ()] == ["t"]
