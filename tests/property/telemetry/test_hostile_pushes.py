"""Any bytes: a push is read or refused, and what is kept of it stays bounded."""

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.telemetry.otlp import Kind, Point, Pushed, decode, with_attributes
from kavka_broker.core.telemetry.protobuf import varint, write_varint
from kavka_broker.core.telemetry.series import AllSeries, Source, gathered
from kavka_broker.protocol.errors import ProtocolViolation
from tests.support.pushes import flow, gauge, histogram, metrics, point

GOOD = metrics(
    gauge("g", 1.0, point(2, node="1")), flow("f", 3), histogram("h", 4, 5.0), flow("t", 6, temporality=2), key="value"
)


def read(data: bytes) -> None:
    for reading in (decode, lambda bytes_: with_attributes(bytes_, [("a", "b")], 10_000)):
        try:
            reading(data)
        except ProtocolViolation:
            continue


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read(data)


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=5), st.integers(0, len(GOOD)))
def test_a_good_push_with_other_bytes_in_it(changes: list[tuple[int, int]], end: int) -> None:
    data = bytearray(GOOD)
    for at, byte in changes:
        data[at] = byte
    read(bytes(data[:end]))
    read(bytes(data))


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_numbers_are_read_as_they_are_written(value: int, rest: bytes) -> None:
    written = write_varint(value)
    assert varint(memoryview(written + rest), 0) == (value, len(written))


POINTS = st.builds(
    Point, st.sampled_from("abcdef"), st.sampled_from(list(Kind)), st.floats(0, 1e6), st.sampled_from([b"", b"1"])
)
PUSHES = st.tuples(st.sampled_from("pqrstu"), st.integers(0, 9), st.lists(POINTS, max_size=8), st.integers(0, 200_000))


@given(st.lists(PUSHES, max_size=40))
def test_series_are_bounded_and_flows_never_fall(pushes: list[tuple[str, int, list[Point], int]]) -> None:
    series, now_ms = AllSeries(series_max=8, per_client_max=3), 0
    for client_id, instance, points, passed_ms in pushes:
        now_ms += passed_ms
        living = [(key, one) for key, one in series.series.items() if one.expires_ms > now_ms]
        before = {key: one.value for key, one in living if not key.is_level}
        found = gathered(Pushed(points), lambda _: True).points
        series.take(Source(client_id, "x"), bytes([instance]) * 16, found, 1000, now_ms)
        after = dict(series)
        assert len(series) <= 8 + 3
        for client in {key.client: None for key in after}:
            assert sum(key.client == client for key in after) <= 3
        assert all(after[key] >= value for key, value in before.items())
    series.expire(now_ms + 60_000)
    assert len(series) == 0
