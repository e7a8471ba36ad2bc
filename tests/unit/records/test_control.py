import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import read_header
from kavka_broker.protocol.records.control import (
    ControlType,
    Marker,
    build_control_batch,
    build_marker,
    control_key,
    control_type,
    read_marker,
)
from kavka_broker.protocol.records.record import build_batch, read_records


def test_a_marker_ends_a_producers_transaction() -> None:
    batch = build_marker(ControlType.ABORT, producer_id=3, producer_epoch=1, coordinator_epoch=6, timestamp_ms=9)
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, -1)
    assert read_marker(batch) == Marker(ControlType.ABORT, 6)
    (record,) = read_records(batch)
    assert record.key == bytes.fromhex("00000000")
    assert record.value == bytes.fromhex("000000000006")


def test_other_control_batches_hold_no_marker() -> None:
    batch = build_control_batch([(ControlType.LEADER_CHANGE, b"value")], timestamp_ms=1)
    assert read_marker(batch) is None
    assert [control_type(record.key) for record in read_records(batch)] == [ControlType.LEADER_CHANGE]


def test_kinds_of_a_newer_kafka_are_passed_over() -> None:
    assert control_type(bytes.fromhex("00000063")) is None
    assert control_type(control_key(ControlType.KRAFT_VOTERS)) is ControlType.KRAFT_VOTERS


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_key_too_short_is_a_violation(key: bytes | None) -> None:
    with pytest.raises(ProtocolViolation):
        control_type(key)


def test_a_marker_without_a_value_is_a_violation() -> None:
    batch = build_batch([(control_key(ControlType.COMMIT), None)], producer_id=1, control=True)
    with pytest.raises(ProtocolViolation):
        read_marker(batch)
