"""Records: there and back; any bytes raise nothing but ProtocolViolation."""

from unittest.mock import patch

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records import unpacking
from kavka_broker.protocol.records.batch import (
    HEADER_BYTES,
    crc_is_valid,
    read_header,
    set_log_append_time,
    split_batches,
)
from kavka_broker.protocol.records.compression import Compression, decompress
from kavka_broker.protocol.records.record import Record, build_batch, read_records
from kavka_broker.protocol.records.scan import Seen, scan

BYTES = st.none() | st.binary(max_size=60)
TIMES = st.integers(-1, 2**50)
HEADERS = st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3)
RECORDS = st.lists(st.builds(Record, st.just(-1), TIMES, BYTES, BYTES, HEADERS), min_size=1, max_size=8)
CODECS = st.sampled_from(Compression)


@given(RECORDS, CODECS, st.integers(0, 2**60))
def test_records_are_read_as_they_were_written(records: list[Record], codec: Compression, base_offset: int) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    assert crc_is_valid(batch)
    found = read_records(batch)
    assert [record.offset for record in found] == list(range(base_offset, base_offset + len(records)))
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in found] == [
        (r.timestamp, r.key, r.value, r.headers) for r in records
    ]


@given(RECORDS, CODECS, st.data())
@settings(max_examples=300)
def test_broken_bytes_raise_only_violations(records: list[Record], codec: Compression, data: st.DataObject) -> None:
    batch = build_batch(records, compression=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_BYTES - 4, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_records(batch, size_bytes_max=1_000_000)
    except ProtocolViolation:
        return


@given(st.binary(max_size=300))
def test_any_bytes_split_or_raise_a_violation(data: bytes) -> None:
    try:
        for header, batch in split_batches(data):
            assert len(batch) == header.size_bytes
    except ProtocolViolation:
        return


@given(st.integers(1, 4), st.binary(max_size=200))
def test_any_bytes_unpack_or_raise_a_violation(codec: int, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, 10_000)) <= 10_000
    except ProtocolViolation:
        return


def scanned(batch: bytes | bytearray, piece_bytes: int) -> list[Seen] | None:
    """What a scan sees, None where it finds something wrong."""
    with patch.multiple(unpacking, PIECE_BYTES=piece_bytes, FED_BYTES=piece_bytes):
        try:
            return [seen for some in scan(read_header(batch), batch, 1_000_000) for seen in some]
        except ProtocolViolation:
            return None


def read(batch: bytes | bytearray) -> list[Seen] | None:
    try:
        records = read_records(batch, size_bytes_max=1_000_000)
    except ProtocolViolation as violation:
        assume("utf-8" not in str(violation))  # a scan does not look at the names of headers
        return None
    return [(record.offset, record.timestamp, record.key is not None) for record in records]


@given(RECORDS, CODECS, st.integers(0, 2**60), st.integers(1, 100), st.booleans())
def test_a_scan_sees_what_a_read_reads(
    records: list[Record], codec: Compression, base_offset: int, piece_bytes: int, is_leader_time: bool
) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    if is_leader_time:
        set_log_append_time(batch, 7)
    assert scanned(batch, piece_bytes) == read(batch) is not None


@given(RECORDS, CODECS, st.integers(1, 100), st.data())
@settings(max_examples=300)
def test_a_scan_refuses_what_a_read_refuses(
    records: list[Record], codec: Compression, piece_bytes: int, data: st.DataObject
) -> None:
    batch = build_batch(records, compression=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_BYTES - 4, len(batch) - 1))] = data.draw(st.integers(0, 255))
    assert scanned(batch, piece_bytes) == read(batch)


@given(st.integers(1, 4), st.binary(max_size=200), st.integers(1, 50))
def test_pieces_are_what_the_whole_is(codec: int, data: bytes, piece_bytes: int) -> None:
    try:
        whole = bytes(decompress(codec, data, 10_000))
    except ProtocolViolation:
        whole = None
    with patch.multiple(unpacking, PIECE_BYTES=piece_bytes, FED_BYTES=piece_bytes):
        try:
            pieces = list(unpacking.unpack(codec, data, 10_000))
        except ProtocolViolation:
            assert whole is None
            return
    assert b"".join(pieces) == whole
    assert all(len(piece) <= piece_bytes for piece in pieces)
