"""A look at a batch costs what was looked at, not what the batch says."""

import tracemalloc
from itertools import islice
from struct import pack_into

import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, read_header
from kavka_broker.protocol.records.compression import Compression, TooLarge, compress
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.protocol.records.scan import HEADERS_PER_STEP_MAX, scan
from kavka_broker.protocol.records.unpacking import PIECE_BYTES

SMALLEST = bytes([12, 0, 0, 0, 1, 1, 0])  # a record without key, value and headers
PACKING = [Compression.GZIP, Compression.LZ4, Compression.ZSTD]


def made_up(codec: Compression, records: bytes, count: int) -> bytes:
    """A batch that says it has so many records."""
    body = compress(codec, records)
    batch = bytearray(build_batch([(None, b"x")], timestamp_ms=5)[:HEADER_BYTES]) + body
    pack_into(">i", batch, 8, len(batch) - 12)
    pack_into(">h", batch, 21, codec)
    pack_into(">i", batch, 57, count)
    return bytes(batch)


@pytest.mark.parametrize("codec", PACKING)
def test_millions_of_records_are_seen_a_piece_at_a_time(codec: Compression) -> None:
    count = 300_000
    batch = made_up(codec, SMALLEST * count, count)
    sizes = [len(seen) for seen in scan(read_header(batch), batch)]
    assert sum(sizes) == count
    assert max(sizes) <= PIECE_BYTES // len(SMALLEST) + 1


@pytest.mark.parametrize("codec", PACKING)
def test_a_look_at_the_first_records_unpacks_no_more(codec: Compression) -> None:
    batch = made_up(codec, SMALLEST * PIECE_BYTES + b"\xff" * 1_000_000, 1_000_000)
    assert list(islice(scan(read_header(batch), batch), 1)) != [[]], "what is wrong behind it was not come to"
    with pytest.raises(ProtocolViolation):
        list(scan(read_header(batch), batch))


@pytest.mark.parametrize("codec", PACKING)
def test_a_record_of_many_megabytes_takes_the_memory_of_some_pieces(codec: Compression) -> None:
    batch = bytes(build_batch([(None, bytes(32 << 20)), (b"k", b"")], timestamp_ms=5, compression=codec))
    header = read_header(batch)
    tracemalloc.start()
    try:
        seen = [one for some in scan(header, batch) for one in some]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == [(0, 5, False), (1, 5, True)]
    assert peak_bytes < 1 << 20


def test_a_record_of_many_headers_is_walked_in_steps() -> None:
    headers = [("h", None)] * (4 * HEADERS_PER_STEP_MAX)
    batch = bytes(build_batch([Record(0, 5, None, bytes(PIECE_BYTES), headers)]))
    steps = list(scan(read_header(batch), batch))
    assert steps[-1] == [(0, 5, False)]
    assert len(steps) > 4


@pytest.mark.parametrize("codec", PACKING)
def test_what_it_may_unpack_to_is_bounded(codec: Compression) -> None:
    batch = made_up(codec, bytes(1_000_000), 1)
    with pytest.raises((TooLarge, ProtocolViolation)):
        list(scan(read_header(batch), batch, size_bytes_max=100_000))


def test_a_negative_count_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="-1 records"):
        scan(read_header(made_up(Compression.NONE, SMALLEST, -1)), made_up(Compression.NONE, SMALLEST, -1))
