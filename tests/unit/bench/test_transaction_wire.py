"""The bytes of a transactional producer, against the broker's codec: two hands wrote them apart."""

import struct

from bench import transaction_wire, wire
from bench.flexible_wire import NO_TAGS
from bench.transaction_wire import Identity
from kavka_broker.protocol import codec
from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from kavka_broker.protocol.messages.end_txn_response import EndTxnResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.list_transactions_request import ListTransactionsRequest
from kavka_broker.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kavka_broker.protocol.records.batch import crc_is_valid, read_header
from kavka_broker.protocol.records.record import read_records

HEADER_BYTES = 4 + wire.HEADER.size + len(wire.CLIENT_ID) + len(NO_TAGS)
SOMEBODY = Identity(4711, 3)


def test_the_frames_are_what_the_codec_reads() -> None:
    frame = transaction_wire.init_producer_frame("pay")
    assert struct.unpack_from(">ihh", frame) == (len(frame) - 4, 22, 4)
    begun = codec.decode(InitProducerIdRequest, 4, frame[HEADER_BYTES:])
    assert (begun.transactional_id, begun.producer_id, begun.producer_epoch) == ("pay", -1, -1)
    ended = codec.decode(EndTxnRequest, 5, transaction_wire.end_frame("pay", SOMEBODY)[HEADER_BYTES:])
    assert (ended.transactional_id, ended.producer_id, ended.producer_epoch, ended.committed) == ("pay", 4711, 3, True)
    produced = codec.decode(
        ProduceRequest, 12, transaction_wire.produce_frame("pay", "orders", [b"first", b"second"])[HEADER_BYTES:]
    )
    (topic,) = produced.topic_data
    assert (produced.transactional_id, produced.acks, topic.name) == ("pay", -1, "orders")
    assert [(part.index, bytes(part.records)) for part in topic.partition_data] == [(0, b"first"), (1, b"second")]


def test_answers_are_read_as_the_codec_writes_them() -> None:
    for kind, version in ((InitProducerIdResponse, 4), (EndTxnResponse, 5)):
        answer = kind(error_code=51, producer_id=4711, producer_epoch=3)
        body = b"\0" + codec.encode(answer, version)
        assert transaction_wire.identity_in(memoryview(body)) == (51, SOMEBODY)
    parts = [PartitionProduceResponse(number, code, 7, -1, 0) for number, code in enumerate((0, 0, 6))]
    for known, error in ((parts[:2], 0), (parts, 6)):
        answered = ProduceResponse([TopicProduceResponse("orders", b"", known)], 0)
        assert transaction_wire.produce_error(memoryview(b"\0" + codec.encode(answered, 12))) == error


def test_a_batch_is_of_a_transaction_and_numbered() -> None:
    data = transaction_wire.batch(SOMEBODY, 20, 10, b"x" * 100)
    assert crc_is_valid(data)
    header = read_header(data)
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.records_count) == (4711, 3, 20, 10)
    found = read_records(data)
    assert [(record.offset, record.key, record.value) for record in found] == [(n, None, b"x" * 100) for n in range(10)]


def test_a_coordinator_is_looked_for_and_its_ids_are_counted() -> None:
    frame = transaction_wire.find_coordinator_frame("pay")
    plain = HEADER_BYTES - len(NO_TAGS)
    asked = codec.decode(FindCoordinatorRequest, 2, frame[plain:])
    assert (asked.key, asked.key_type) == ("pay", 1)
    found = FindCoordinatorResponse(error_code=0, error_message="NONE", node_id=2, host="127.0.0.1", port=9_093)
    assert transaction_wire.coordinator_in(memoryview(codec.encode(found, 2))) == (0, 9_093)
    missing = FindCoordinatorResponse(error_code=15, error_message=None, node_id=-1, host="", port=-1)
    assert transaction_wire.coordinator_in(memoryview(codec.encode(missing, 2))) == (15, -1)
    listing = codec.decode(ListTransactionsRequest, 0, transaction_wire.list_frame()[HEADER_BYTES:])
    assert (listing.state_filters, listing.producer_id_filters) == ([], [])
    states = [TransactionState(f"pay-{number}", number, "Empty") for number in range(200)]
    listed = ListTransactionsResponse(unknown_state_filters=["odd"], transaction_states=states)
    assert transaction_wire.listed_in(memoryview(NO_TAGS + codec.encode(listed, 0))) == 200
