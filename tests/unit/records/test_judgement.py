"""The quick walk over a batch's records: it sees what the slow one sees, and refuses what that refuses."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, read_header, set_crc
from kavka_broker.protocol.records.judgement import time_span
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.protocol.records.scan import scan

BASE_MS = 1_000_000


def body_of(records: list[Record]) -> bytes:
    return bytes(build_batch(records))[HEADER_BYTES:]


def verdict(data: bytes, count: int) -> tuple[int, int] | str:
    try:
        return time_span(data, count)
    except ProtocolViolation:
        return "refused"


def slow_verdict(data: bytes, count: int) -> tuple[int, int] | str:
    """By `scan`, of which the property tests say that it is right."""
    batch = bytearray(build_batch([Record(0, 0, None, None)])[:HEADER_BYTES]) + data
    header = read_header(batch)._replace(records_count=count, base_timestamp=0, length=len(batch) - 12)
    set_crc(batch)
    try:
        times = [timestamp for seen in scan(header, bytes(batch)) for _, timestamp, _ in seen]
    except ProtocolViolation:
        return "refused"
    return min(times), max(times)


Drawn = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
FIELD = st.none() | st.binary(max_size=3) | st.integers(0, 200).map(bytes)
RECORD = st.tuples(st.integers(-70, 20_000), FIELD, FIELD, st.lists(st.tuples(st.text(max_size=2), FIELD), max_size=2))


@given(st.lists(st.tuples(RECORD, st.integers(1, 40)), min_size=1, max_size=6), st.data())
@settings(max_examples=300)
def test_it_agrees_with_the_slow_walk(runs: list[tuple[Drawn, int]], data: st.DataObject) -> None:
    records: list[Record] = []
    for (delta, key, value, headers), count in runs:
        for number in range(count):
            records.append(Record(len(records), BASE_MS + delta + number, key, value, headers))
    body = body_of(records)
    assert verdict(body, len(records)) == slow_verdict(body, len(records)) != "refused"
    place = data.draw(st.integers(0, len(body) - 1))
    broken = bytearray(body)
    broken[place] ^= data.draw(st.integers(1, 255))
    assert verdict(bytes(broken), len(records)) == slow_verdict(bytes(broken), len(records))
    for count in (len(records) - 1, len(records) + 1):
        assert verdict(body, count) == "refused" or count == 0


@given(st.binary(max_size=60), st.integers(1, 6))
@settings(max_examples=500)
def test_any_bytes(data: bytes, count: int) -> None:
    assert verdict(data, count) == slow_verdict(data, count)


def test_a_varint_that_never_ends_is_none() -> None:
    long = b"\x80" * 11 + b"\0"
    assert verdict(bytes([2 * (len(long) + 5)]) + b"\0\0" + long + b"\1\1\0", 1) == "refused"


@pytest.mark.parametrize("sizes", [(100, 100), (50, 150)], ids=["one size", "many sizes"])
def test_many_records(sizes: tuple[int, int]) -> None:
    draw = random.Random(1)
    records = [Record(i, BASE_MS + i // 7, b"k%d" % i, bytes(draw.randint(*sizes))) for i in range(9000)]
    assert verdict(body_of(records), 9000) == (0, 8999 // 7)
