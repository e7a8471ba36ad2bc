"""The quick walk over a batch's records: it sees what the slow one sees, and refuses what that refuses."""

import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records import judgement
from kavka_broker.protocol.records.batch import HEADER_BYTES, read_header, set_crc
from kavka_broker.protocol.records.judgement import STEPS_A_RUN, TooLong, time_span
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


RUNS = st.lists(st.tuples(RECORD, st.integers(1, 40), st.sampled_from((-3, 0, 1, 50))), min_size=1, max_size=6)


def drawn(runs: list[tuple[Drawn, int, int]]) -> list[Record]:
    """Runs of records alike, but for their times, which go on by so many ms."""
    records: list[Record] = []
    for (delta, key, value, headers), count, pace_ms in runs:
        for number in range(count):
            records.append(Record(len(records), BASE_MS + delta + number * pace_ms, key, value, headers))
    return records


@given(RUNS, st.booleans(), st.data())
@settings(max_examples=300)
def test_it_agrees_with_the_slow_walk(
    runs: list[tuple[Drawn, int, int]], has_blocks: bool, data: st.DataObject
) -> None:
    records = drawn(runs)
    body = body_of(records)
    blocks = {"TRIAL": 8, "BLOCK": 8, "PEELED_FROM": 0, "PEELED_MAX": 2} if has_blocks else {"TRIAL": 128}
    with patch.dict(vars(judgement), blocks):
        assert verdict(body, len(records)) == slow_verdict(body, len(records)) != "refused"
        place = data.draw(st.integers(0, len(body) - 1))
        broken = bytearray(body)
        broken[place] ^= data.draw(st.integers(1, 255))
        assert verdict(bytes(broken), len(records)) == slow_verdict(bytes(broken), len(records))
        for count in (len(records) - 1, len(records) + 1):
            assert verdict(body, count) == "refused" or count == 0


@given(RUNS, st.integers(0, 100))
def test_few_steps_change_no_verdict(runs: list[tuple[Drawn, int, int]], steps_max: int) -> None:
    records = drawn(runs)
    body = body_of(records)
    try:
        assert time_span(body, len(records), steps_max) == time_span(body, len(records))
    except TooLong:
        steps = sum(1 + len(record.headers) for record in records)
        assert steps + STEPS_A_RUN * len(records) // judgement.RUN_MIN > steps_max


def alike(count: int, headers: list[tuple[str, bytes | None]] | None = None) -> list[Record]:
    return [Record(i, BASE_MS + i // 7, None, bytes(100), headers or []) for i in range(count)]


def unlike(count: int) -> list[Record]:
    return [Record(i, BASE_MS, None, bytes(100 + i % 3)) for i in range(count)]


@pytest.mark.parametrize(
    ("records", "steps"),
    [(alike(9000), 500), (alike(9000, [("trace", b"1"), ("span", b"2")]), 500), (unlike(1000), 1000)],
    ids=["alike", "with headers", "unlike"],
)
def test_steps_are_what_it_takes(records: list[Record], steps: int) -> None:
    body = body_of(records)
    assert time_span(body, len(records), steps) == time_span(body, len(records))
    with pytest.raises(TooLong):
        time_span(body, len(records), steps // 2)


def test_headers_take_steps() -> None:
    body = body_of([Record(0, BASE_MS, None, None, [("", None)] * 1000)])
    assert time_span(body, 1, 1001) == (0, 0)
    with pytest.raises(TooLong):
        time_span(body, 1, 999)


def test_steps_do_not_run_out_where_they_have_no_bound() -> None:
    claimed = b"\xff" * 8 + b"\x7e"
    assert verdict(bytes([2 * 14]) + b"\0\0\0\1\1" + claimed, 1) == "refused"


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
