import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import read_header
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.control import (
    ControlType,
    Marker,
    build_control_batch,
    build_marker,
    control_key,
    control_type,
    read_marker,
)
from kavka_broker.protocol.records.record import Record, build_batch, read_records


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


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
@pytest.mark.parametrize("epoch", [0, 7, 2**31 - 1])
def test_a_marker_is_packed_as_every_other_batch(kind: ControlType, epoch: int) -> None:
    packed = build_marker(kind, producer_id=5, producer_epoch=2, coordinator_epoch=epoch, timestamp_ms=1234)
    record = control_key(kind), bytes(2) + epoch.to_bytes(4, "big")
    assert packed == build_batch(
        [record], timestamp_ms=1234, producer_id=5, producer_epoch=2, transactional=True, control=True
    )
    assert read_marker(packed) == read_marker(memoryview(packed)) == Marker(kind, epoch)


@pytest.mark.parametrize("timestamp_ms", [[1, 2], [1, 1]])
def test_markers_that_others_have_written_are_read_too(timestamp_ms: list[int]) -> None:
    """Such as one with a header, with a longer value, or behind whose record another stands."""
    key, value = control_key(ControlType.ABORT), bytes(5) + b"\x07"
    records = [Record(offset, time, key, value) for offset, time in enumerate(timestamp_ms)]
    for odd in (records, [records[0]._replace(headers=[("h", b"v")])], [records[0]._replace(value=value + b"more")]):
        batch = build_batch(odd, producer_id=1, transactional=True, control=True)
        assert read_marker(batch) == Marker(ControlType.ABORT, 7)
    compressed = build_batch(records[:1], producer_id=1, control=True, compression=Compression.GZIP)
    assert read_marker(compressed) == Marker(ControlType.ABORT, 7)


def test_no_byte_of_a_marker_is_read_otherwise_at_once_than_record_by_record() -> None:
    marker = build_marker(ControlType.COMMIT, producer_id=5, producer_epoch=2, coordinator_epoch=7, timestamp_ms=1)
    for position in range(21, len(marker)):
        for value in range(256):
            changed = bytearray(marker)
            changed[position] = value
            longer = bytes(changed) + b"\0"  # behind a batch nothing counts, but what is so long is read by its records
            assert told(bytes(changed)) == told(longer), (position, value)


def told(batch: bytes) -> Marker | str | None:
    try:
        return read_marker(batch)
    except ProtocolViolation:
        return "violation"


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
