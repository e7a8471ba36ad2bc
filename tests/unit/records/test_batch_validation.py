"""The quick walk over a batch's records: it sees what the slow one sees, and refuses what that refuses."""

import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records import batch_validation
from kavka_broker.protocol.records.batch import HEADER_BYTES, read_header, set_crc
from kavka_broker.protocol.records.batch_validation import (
    STEPS_A_RUN,
    Misnumbered,
    TooLong,
    column_of_numbers,
    time_span,
)
from kavka_broker.protocol.records.record import Record, build_batch, pack_records, put_varint
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
    """Runs of records that are alike except for their times, which go on by so many ms."""
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
    with patch.dict(vars(batch_validation), blocks):
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
        assert steps + STEPS_A_RUN * len(records) // batch_validation.RUN_MIN > steps_max


def numbered(deltas: list[int], value_bytes: int = 9) -> bytes:
    """Records alike with these offset deltas."""
    return bytes(pack_records([Record(delta, BASE_MS, b"k", bytes(value_bytes)) for delta in deltas], 0, BASE_MS))


def are_numbered(body: bytes, count: int) -> bool:
    try:
        time_span(body, count, is_numbered=True)
    except Misnumbered:
        return False
    return True


@given(RUNS, st.booleans(), st.data())
@settings(max_examples=300)
def test_offsets_that_do_not_go_up_by_one_are_seen(
    runs: list[tuple[Drawn, int, int]], has_blocks: bool, data: st.DataObject
) -> None:
    records = drawn(runs)
    place = data.draw(st.integers(0, len(records) - 1))
    other = place + data.draw(st.sampled_from([-8192, -64, -2, -1, 1, 2, 64, 128, 8192, 1 << 20, 1 << 27]))
    with patch.dict(vars(batch_validation), {"TRIAL": 8, "BLOCK": 8} if has_blocks else {"TRIAL": 128}):
        assert are_numbered(body_of(records), len(records))
        records[place] = records[place]._replace(offset=other)
        assert not are_numbered(bytes(pack_records(records, 0, records[0].timestamp)), len(records))


MANY = numbered(list(range(17_000)), 0)


@pytest.mark.parametrize("place", [0, 63, 64, 200, 8191, 8192, 9216, 16_999])
@pytest.mark.parametrize("by", [-8192, 1, 64])
def test_one_offset_among_many_is_seen(place: int, by: int) -> None:
    right, wrong = numbered([place], 0), numbered([place + by], 0)
    assert are_numbered(MANY, 17_000)
    assert MANY.count(right) == 1
    assert not are_numbered(MANY.replace(right, wrong), 17_000)


@pytest.mark.parametrize("number", [0, 63, 8191, 16_000, (1 << 20) - 500, (1 << 20) + 5, (1 << 27) - 9, 1 << 27])
def test_a_column_has_a_byte_of_each_number(number: int) -> None:
    written = [bytearray() for _ in range(1024)]
    for at, one in enumerate(written):
        put_varint(one, number + at)
    alike = [one for one in written if len(one) == len(written[0])]
    for at in range(len(written[0])):
        column = column_of_numbers(number, len(alike), 7 * at, has_next=at < len(written[0]) - 1)
        assert column == bytes(one[at] for one in alike)


@pytest.mark.parametrize("first", [1, 64, 128, 8192, -64])
def test_offsets_begin_at_0(first: int) -> None:
    assert not are_numbered(numbered(list(range(first, first + 200))), 200)


def test_a_long_way_to_write_a_number_is_that_number() -> None:
    """A varint may write 1 in two bytes: no reader refuses it."""
    short = numbered([0])
    assert are_numbered(bytes([short[0] + 2, *short[1:3], 0x80, 0x00, *short[4:]]), 1)
    assert not are_numbered(bytes([short[0] + 2, *short[1:3], 0x82, 0x00, *short[4:]]), 1)


def test_numbers_that_have_no_room_in_their_bytes_are_seen() -> None:
    """The low bytes of 64 and those behind it say 0 and so on."""
    assert not are_numbered(numbered([*range(64), *range(40)]), 104)


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
def test_any_bytes_are_judged_as_the_slow_way_judges_them(data: bytes, count: int) -> None:
    assert verdict(data, count) == slow_verdict(data, count)


def test_a_varint_that_never_ends_is_none() -> None:
    long = b"\x80" * 11 + b"\0"
    assert verdict(bytes([2 * (len(long) + 5)]) + b"\0\0" + long + b"\1\1\0", 1) == "refused"


@pytest.mark.parametrize("sizes", [(100, 100), (50, 150)], ids=["one size", "many sizes"])
def test_a_batch_of_many_records_is_judged_whole(sizes: tuple[int, int]) -> None:
    draw = random.Random(1)
    records = [Record(i, BASE_MS + i // 7, b"k%d" % i, bytes(draw.randint(*sizes))) for i in range(9000)]
    assert verdict(body_of(records), 9000) == (0, 8999 // 7)
