import pytest

from kavka_broker.protocol.codec import UnsupportedField, decode, encode, encode_parts
from kavka_broker.protocol.compiler.encoder import UNCOPIED_BYTES_MIN
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import EMPTY
from kavka_broker.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kavka_broker.protocol.messages.fetch_request import FetchRequest, ReplicaState
from kavka_broker.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.list_offsets_request import ListOffsetsRequest
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData


def produce(records: object) -> ProduceRequest:
    return ProduceRequest(
        None, -1, 1500, [TopicProduceData(name="t", partition_data=[PartitionProduceData(2, records)])]
    )


def fetched(*batches: object) -> FetchResponse:
    partitions = [PartitionData(partition_index=index, records=batch) for index, batch in enumerate(batches)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def test_a_request_by_the_byte() -> None:
    encoded = encode(HeartbeatRequest(group_id="g", generation_id=7, member_id="m", group_instance_id=None), 4)
    assert encoded.hex(" ") == "02 67 00 00 00 07 02 6d 00 00"


def test_records_are_a_view_of_the_frame_and_not_a_copy() -> None:
    frame = bytearray(encode(produce(b"batch"), 9))
    records = decode(ProduceRequest, 9, frame).topic_data[0].partition_data[0].records
    assert records == b"batch"
    frame[frame.index(b"batch")] = ord("l")
    assert records.tobytes() == b"latch"


def test_records_may_be_several_buffers() -> None:
    pieces = [b"one", memoryview(b"two"), bytearray(b"three")]
    assert encode(fetched(pieces), 12) == encode(fetched(b"onetwothree"), 12)


def test_large_records_go_out_uncopied_and_small_ones_joined() -> None:
    large = bytearray(UNCOPIED_BYTES_MIN)
    message = fetched(b"small", [large, large], None, b"small")
    parts = encode_parts(message, 12)
    assert [part is large for part in parts] == [False, True, True, False]
    assert b"".join(parts) == encode(message, 12)


def test_what_a_version_lacks_must_hold_its_default() -> None:
    with pytest.raises(UnsupportedField, match=r"HeartbeatRequest\.group_instance_id .* version 2"):
        encode(HeartbeatRequest("g", 1, "m", "instance"), 2)
    with pytest.raises(UnsupportedField, match="replica_state"):
        encode(FetchRequest(replica_state=ReplicaState(1, 1)), 12)


def test_what_a_version_lacks_is_left_out_where_it_may_be_ignored() -> None:
    assert encode(FetchRequest(rack_id="east"), 4) == encode(FetchRequest(), 4)


def test_null_where_the_version_has_none_is_refused() -> None:
    with pytest.raises(UnsupportedField, match=r"ListOffsetsRequest\.topics"):
        encode(ListOffsetsRequest(topics=None), 6)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedField, match=r"HeartbeatRequest\.group_id"):
        encode(HeartbeatRequest(group_id=None), 4)  # type: ignore[arg-type]


def test_strings_longer_than_kafka_reads_are_refused() -> None:
    assert len(encode(HeartbeatRequest("g" * 32767), 4)) > 32767
    with pytest.raises(UnsupportedField, match="32767 is the limit"):
        encode(HeartbeatRequest("g" * 32768), 4)


def test_a_version_that_never_was_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="versions 0 to 4, not 5"):
        encode(HeartbeatRequest(), 5)


def test_messages_are_compared_and_matched_by_their_fields() -> None:
    assert TopicRecord("a", bytes(16)) == TopicRecord(name="a")
    assert TopicRecord("a") != TopicRecord("b")
    match TopicRecord("orders"):
        case TopicRecord(name):
            assert name == "orders"


def test_defaults_are_not_shared_between_messages() -> None:
    first, second = FetchRequest(), FetchRequest()
    first.topics.append(None)  # type: ignore[arg-type]
    assert second.topics == [] == EMPTY
    with pytest.raises(AttributeError, match="give a new one"):
        first.replica_state.replica_id = 4


def test_a_broker_error_says_what_and_why() -> None:
    assert str(BrokerError(ErrorCode.INVALID_CONFIG, "no such key")) == "INVALID_CONFIG: no such key"
    assert str(BrokerError(ErrorCode.NOT_COORDINATOR)) == "NOT_COORDINATOR"


@pytest.mark.parametrize("version", [0, 3], ids=["plain", "compact"])
def test_words_about_a_long_name_are_cut_to_what_a_string_holds(version: int) -> None:
    """A request may name 32,767 bytes, and words about them are longer: they are sent all the same."""
    words = f"no topic is called {chr(0xE9) * 16_383}"
    answer = CreatePartitionsResponse(results=[CreatePartitionsTopicResult("t", 3, words)])
    (result,) = decode(CreatePartitionsResponse, version, encode(answer, version)).results
    told = result.error_message or ""
    assert told.endswith("...")
    assert words.startswith(told.removesuffix("..."))
    assert 32_760 < len(told.encode()) <= 32_767
