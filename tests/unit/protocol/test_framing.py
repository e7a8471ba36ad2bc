import pytest

from kavka_broker.protocol import coordinator_records, metadata_records
from kavka_broker.protocol.catalog import request_class, response_class
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.coordinator_records import Coordinator, frame_key, frame_value
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.framing import (
    RequestHeader,
    encode_request_header,
    encode_response_parts,
    read_request_header,
    read_response_header,
    response_header_version,
)
from kavka_broker.protocol.messages import index
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.transaction.transaction_log_key import TransactionLogKey
from kavka_broker.protocol.uuids import ONE, from_text, to_text

PRODUCE, HEARTBEAT, API_VERSIONS = 0, 12, 18


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "größe"])
@pytest.mark.parametrize(("version", "flexible"), [(8, False), (9, True)])
def test_request_headers_come_back(client_id: str | None, version: int, flexible: bool) -> None:
    header = RequestHeader(PRODUCE, version, 77, client_id)
    encoded = encode_request_header(header)
    assert encoded.endswith(b"\0") is flexible or client_id is None or client_id == ""
    assert read_request_header(memoryview(encoded + b"body")) == (header, len(encoded))


def test_tagged_fields_of_a_request_header_are_skipped() -> None:
    encoded = encode_request_header(RequestHeader(PRODUCE, 9, 1, "c"))
    tagged = encoded[:-1] + b"\2" + b"\0\3abc" + b"\1\0"
    assert read_request_header(memoryview(tagged))[1] == len(tagged)


def test_the_header_of_an_unknown_key_can_be_read() -> None:
    assert read_request_header(memoryview(b"\x03\xe7\0\1\0\0\0\5\xff\xff")) == (RequestHeader(999, 1, 5, None), 10)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0\3\0\0\0\1\0", b"\0\0\0\3\0\0\0\1\0\5abc", b"\0\0\0\x09\0\0\0\1\0\1a"])
def test_broken_request_headers_are_violations(frame: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        read_request_header(memoryview(frame))


def test_every_response_is_flexible_where_its_request_is() -> None:
    for key in index.REQUESTS:
        assert request_class(key).FLEXIBLE_FROM == response_class(key).FLEXIBLE_FROM


def test_responses_carry_size_correlation_id_and_tags() -> None:
    assert (
        b"".join(encode_response_parts(HeartbeatResponse(error_code=27), 3, 9)).hex(" ")
        == "00 00 00 0a 00 00 00 09 00 00 00 00 00 1b"
    )
    flexible = b"".join(encode_response_parts(HeartbeatResponse(error_code=27), 4, 9))
    assert flexible.hex(" ") == "00 00 00 0c 00 00 00 09 00 00 00 00 00 00 1b 00"
    assert read_response_header(HEARTBEAT, 4, memoryview(flexible)[4:]) == (9, 5)


def test_api_versions_answers_with_the_oldest_header() -> None:
    encoded = b"".join(encode_response_parts(ApiVersionsResponse(), 3, 9))
    assert encoded[4:8] + encode(ApiVersionsResponse(), 3) == encoded[4:]
    assert response_header_version(API_VERSIONS, 4) == 0
    assert read_response_header(API_VERSIONS, 4, memoryview(encoded)[4:]) == (9, 4)


def test_parts_are_the_same_frame() -> None:
    partition = PartitionData(records=[bytes(9000), bytes(3)])
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    parts = encode_response_parts(response, 12, 3)
    assert len(parts) == 4
    assert b"".join(parts) == b"".join(encode_response_parts(response, 12, 3))


def test_a_metadata_record_by_the_byte() -> None:
    framed = metadata_records.frame(TopicRecord("ab", ONE))
    assert framed.hex(" ") == "01 02 00 03 61 62 " + "00 " * 15 + "01 00"
    assert metadata_records.unframe(framed) == TopicRecord("ab", ONE)


def test_metadata_records_take_the_newest_version_or_the_one_asked_for() -> None:
    record = PartitionRecord(partition_id=3, topic_id=ONE, replicas=[1], isr=[1], leader=1)
    assert metadata_records.frame(record)[2] == 2
    assert metadata_records.frame(record, 0)[2] == 0
    assert metadata_records.unframe(metadata_records.frame(record, 0)) == record


@pytest.mark.parametrize("value", [b"", b"\1", b"\0\2\0", b"\1\x63\0", b"\1\2\7", b"\1\2\0\xff"])
def test_broken_metadata_records_are_violations(value: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        metadata_records.unframe(value)


def test_a_metadata_record_is_judged_also_after_one_like_it_was_good() -> None:
    framed = metadata_records.frame(TopicRecord("ab", ONE))
    assert metadata_records.unframe(memoryview(framed)) == metadata_records.unframe(framed) == TopicRecord("ab", ONE)
    with pytest.raises(ProtocolViolation):
        metadata_records.unframe(framed[:-5])
    with pytest.raises(ProtocolViolation):
        metadata_records.unframe(framed[:2])


def test_coordinator_records_come_back() -> None:
    key, value = OffsetCommitKey("g", "t", 3), OffsetCommitValue(offset=5, metadata="m")
    framed = frame_key(key), frame_value(value, 3)
    assert framed[0].hex(" ") == "00 01 00 01 67 00 01 74 00 00 00 03"
    assert framed[1][:2] == b"\0\3"
    assert coordinator_records.unframe(*framed) == (key, value)
    assert coordinator_records.unframe(framed[0], None) == (key, None)


def test_the_same_number_is_another_key_elsewhere() -> None:
    key = TransactionLogKey("payments")
    assert coordinator_records.unframe(frame_key(key), None, Coordinator.TRANSACTION) == (key, None)


@pytest.mark.parametrize(("key", "value"), [(b"", None), (b"\x7f\0", None), (b"\0\1\0\1g\0\1t\0\0\0\3", b"\0\x63")])
def test_broken_coordinator_records_are_violations(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ProtocolViolation):
        coordinator_records.unframe(key, value)


def test_uuids_have_kafkas_text() -> None:
    assert to_text(ONE) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert from_text("AAAAAAAAAAAAAAAAAAAAAQ") == ONE
    for broken in ("", "AAAAAAAAAAAAAAAAAAAAAQ==", "AAAAAAAAAAAAAAAAAAAA+Q", "AAAAAAAAAAAAAAAAAAAA Q"):
        with pytest.raises(ValueError, match="is not a uuid"):
            from_text(broken)
