"""Entries of a batch in pieces, and a batch made of some of them, are what reading and building the whole gives."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records import compacted_batch, packing, unpacking
from kavka_broker.protocol.records.batch import HEADER_BYTES, crc_is_valid, read_header, set_log_append_time
from kavka_broker.protocol.records.compacted_batch import RetainedBatch
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.entries import Entry, entries
from kavka_broker.protocol.records.record import Record, build_batch, read_records
from tests.property.records.test_records import CODECS, RECORDS

MEBIBYTE = 1 << 20


@contextmanager
def pieces_of(piece_bytes: int) -> Iterator[None]:
    small = patch.multiple(unpacking, PIECE_BYTES=piece_bytes, FED_BYTES=piece_bytes)
    with small, patch("kavka_broker.protocol.records.entries.PIECE_BYTES", piece_bytes):
        yield


def seen(entry: Entry) -> tuple[int, int, bytes | None, bool]:
    return entry.offset, entry.timestamp, entry.key, entry.has_value


def read(batch: bytes | bytearray) -> list[tuple[int, int, bytes | None, bool]] | None:
    try:
        records = read_records(batch, size_bytes_max=1_000_000)
    except ProtocolViolation as violation:
        # Text is not looked at where it is not needed.
        return None if "utf-8" not in str(violation) else []
    return [(record.offset, record.timestamp, record.key, record.value is not None) for record in records]


@given(RECORDS, CODECS, st.integers(0, 2**60), st.integers(1, 100), st.booleans())
def test_entries_are_what_a_read_reads(
    records: list[Record], codec: Compression, base_offset: int, piece_bytes: int, is_leader_time: bool
) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    if is_leader_time:
        set_log_append_time(batch, 77)
    with pieces_of(piece_bytes):
        assert [seen(one) for piece in entries(read_header(batch), batch) for one in piece] == read(batch)


@given(RECORDS, CODECS, st.integers(1, 100), st.data())
@settings(max_examples=300)
def test_entries_refuse_what_a_read_refuses(
    records: list[Record], codec: Compression, piece_bytes: int, data: st.DataObject
) -> None:
    batch = build_batch(records, compression=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_BYTES - 4, len(batch) - 1))] = data.draw(st.integers(0, 255))
    expected = read(batch)
    with pieces_of(piece_bytes):
        try:
            found = [seen(one) for piece in entries(read_header(batch), batch, 1_000_000) for one in piece]
        except ProtocolViolation:
            assert not expected
        else:
            assert expected in (found, [])


@given(RECORDS, CODECS, st.integers(0, 2**60), st.none() | st.integers(0, 2**50), st.integers(1, 100), st.data())
def test_what_is_retained_is_unchanged(
    records: list[Record], codec: Compression, base: int, horizon_ms: int | None, piece_bytes: int, data: st.DataObject
) -> None:
    batch = build_batch(records, base_offset=base, compression=codec)
    header, before = read_header(batch), read_records(batch)
    stays = data.draw(st.sets(st.sampled_from(range(len(records))), min_size=1))
    with (
        pieces_of(piece_bytes),
        patch.object(compacted_batch, "FED_BYTES", piece_bytes),
        patch.object(packing, "SNAPPY_BLOCK_BYTES", piece_bytes),
    ):
        made = RetainedBatch(header, horizon_ms)
        for number, entry in enumerate(one for piece in entries(header, batch) for one in piece):
            if number in stays:
                made.add(entry)
        built = made.built()
    after = read_header(built)
    assert read_records(built) == [before[number] for number in sorted(stays)]
    assert crc_is_valid(built)
    assert (after.base_offset, after.last_offset, after.codec) == (header.base_offset, header.last_offset, codec)
    assert after.max_timestamp == max(before[number].timestamp for number in stays)
    assert after.has_delete_horizon == (horizon_ms is not None)
    assert horizon_ms in (None, after.base_timestamp)


@pytest.mark.parametrize("codec", [one for one in Compression if one is not Compression.NONE])
def test_a_small_batch_of_much_takes_little_memory(codec: Compression) -> None:
    value = b"x" * 4_000
    batch = bytes(build_batch([(b"%d" % (number % 100), value) for number in range(5_000)], compression=codec))
    header = read_header(batch)
    tracemalloc.start()
    try:
        made = RetainedBatch(header, None)
        for piece in entries(header, batch):
            for one in piece:
                made.add(one)
        built = made.built()
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(built) < 2 * MEBIBYTE
    assert peak_bytes < 4 * MEBIBYTE, "of 20 MB"
