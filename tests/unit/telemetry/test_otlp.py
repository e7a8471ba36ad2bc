"""What is read of a push: levels and flows; and what is left out."""

import math

import pytest

from kavka_broker.core.telemetry.otlp import Kind, Point, decode, with_attributes
from kavka_broker.core.telemetry.protobuf import Reader, write_bytes, write_varint
from kavka_broker.protocol.errors import ProtocolViolation
from tests.support.pushes import CUMULATIVE, attribute, flow, gauge, histogram, metrics, number, point


def read(*found: bytes) -> list[tuple[str, Kind, float]]:
    return [one[:3] for one in decode(metrics(*found)).points]


def test_gauges_are_levels() -> None:
    assert read(gauge("g", 1.5, -2)) == [("g", Kind.LEVEL, 1.5), ("g", Kind.LEVEL, -2.0)]


def test_sums_that_grow_are_flows() -> None:
    found = read(flow("d", 3), flow("c", 4.5, temporality=CUMULATIVE))
    assert found == [("d", Kind.DELTA, 3.0), ("c", Kind.TOTAL, 4.5)]


def test_a_sum_that_may_fall_is_a_level_where_it_is_whole() -> None:
    pushed = decode(metrics(flow("n", 3, temporality=CUMULATIVE, grows=False), flow("m", 3, grows=False)))
    assert [one[:3] for one in pushed.points] == [("n", Kind.LEVEL, 3.0)]
    assert pushed.omitted == 1


def test_histograms_are_two_flows() -> None:
    assert read(histogram("h", 7, 2.5)) == [("h.count", Kind.DELTA, 7.0), ("h.sum", Kind.DELTA, 2.5)]


def test_a_flow_of_nothing_counts_and_one_that_falls_does_not() -> None:
    pushed = decode(metrics(flow("none", 0), flow("some", 0.5), flow("falls", -0.5)))
    assert [point[:3] for point in pushed.points] == [("none", Kind.DELTA, 0.0), ("some", Kind.DELTA, 0.5)]
    assert pushed.omitted == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_left_out(value: float) -> None:
    pushed = decode(metrics(gauge("g", value), flow("f", value)))
    assert (pushed.points, pushed.omitted) == ([], 2)


def test_what_is_not_shown_is_left_out_and_counted() -> None:
    others = [write_bytes(1, b"x") + write_bytes(field, write_bytes(1, b"")) for field in (10, 11)]
    nameless = [gauge("", 1), gauge("n" * 256, 1)]
    pushed = decode(metrics(*others, *nameless, flow("u", 1, temporality=0), flow("f", -1), gauge("no value", b"")))
    assert (pushed.points, pushed.omitted) == ([], 7)


def test_attributes_tell_points_apart() -> None:
    push = metrics(flow("f", point(1, node="1"), point(2, node="2"), temporality=CUMULATIVE))
    first, second = decode(push).points
    assert first.identity == attribute("node", "1")
    assert first.identity != second.identity


def test_an_empty_push_has_no_points() -> None:
    assert decode(b"").points == []
    assert decode(metrics()).points == []


def test_unknown_fields_are_passed_over() -> None:
    strange = number(900, 2**64 - 1) + write_bytes(901, b"abc") + write_varint(902 << 3 | 5) + b"four"
    assert decode(strange + metrics(gauge("g", 1.0) + strange)).points == [Point("g", Kind.LEVEL, 1.0)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # a size is missing
        b"\x0a\x05ab",  # cut
        b"\x08",  # a number is missing
        b"\x08" + b"\xff" * 10 + b"\x01",  # longer than 64 bits
        b"\x08" + b"\xff" * 9 + b"\x02",  # 65 bits
        b"\x00\x01",  # the field 0
        b"\x0b\x0c",  # a group
        b"\x0e",  # no kind
        number(1, 5),  # a number where a message should be
        metrics(write_bytes(1, b"\xff\xfe") + write_bytes(5, b"")),  # a name that is not UTF-8
        metrics(write_bytes(1, b"g") + write_bytes(5, write_bytes(1, write_bytes(4, b"seven..")))),
        metrics(write_bytes(1, b"g") + write_bytes(5, write_bytes(1, number(4, 1)))),
        metrics(write_bytes(1, b"g") + write_bytes(7, write_bytes(2, b"delta"))),
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode(data)


def test_fields_are_bounded() -> None:
    push = metrics(gauge("g", *range(50)))
    assert len(decode(push).points) == 50
    with pytest.raises(ProtocolViolation, match="too many fields"):
        decode(push, fields_max=50)


def test_attributes_are_added_to_every_resource() -> None:
    push = metrics(gauge("a", 1.0), service="s") + metrics(gauge("b", 2.0))

    added = with_attributes(push, [("client_id", "app"), ("client_software_name", "x")], 1000)

    assert added is not None
    assert [one.metric for one in decode(added).points] == ["a", "b"]
    for resource, before in zip(resources(added), ([attribute("service", "s")], []), strict=True):
        assert resource == [*before, attribute("client_id", "app"), attribute("client_software_name", "x")]


def test_attributes_are_not_added_to_more_resources_than_fit() -> None:
    push = write_bytes(1, b"") * 1000
    added = with_attributes(push, [("client_id", "app")], 10**6)
    assert added is not None
    bytes_added = len(added) - len(push)
    assert with_attributes(push, [("client_id", "app")], bytes_added) == added
    assert with_attributes(push, [("client_id", "app")], bytes_added // 2) is None


def resources(push: bytes) -> list[list[bytes]]:
    """The attributes of each resource, where a resource that is there twice is one, as protobuf reads it."""
    reader = Reader(1000)
    found = []
    for _, one in reader.fields(memoryview(push)):
        assert isinstance(one, memoryview)
        parts = [part for field, part in reader.fields(one) if field == 1]
        found.append([bytes(pair) for part in parts for _, pair in reader.fields(part)])  # type: ignore[arg-type]
    return found
