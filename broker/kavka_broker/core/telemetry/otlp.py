"""Metrics as OpenTelemetry writes them (OTLP, `MetricsData`): what is read of a push, and what is added to it.

    MetricsData > ResourceMetrics > ScopeMetrics > Metric > Gauge, Sum or Histogram > data points

- A gauge, and a sum that may fall, is a level. A sum that only grows, and the count and the sum of a histogram, is a
  flow: as deltas, or as cumulative totals.
- Exponential histograms, summaries, values that are no finite number, and sums that may fall and come as deltas are
  left out, and counted.
- Names and units of attributes are not looked at; all attributes of a point together tell cumulative totals apart.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from math import isfinite
from struct import Struct
from typing import Final, NamedTuple

from kavka_broker.core.telemetry.protobuf import Reader, Value, write_bytes
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.compression import Buffer

FIELDS_MAX: Final = 100_000
"""Of one push; a client that says everything it can has some thousands."""
NAME_BYTES_MAX: Final = 255
DELTA: Final = 1
CUMULATIVE: Final = 2
RESOURCE_METRICS: Final = 1
_DOUBLE: Final = Struct("<d")
_INT64: Final = Struct("<q")
_UINT64: Final = Struct("<Q")


class Kind(Enum):
    """What a value is."""

    LEVEL = auto()
    DELTA = auto()
    TOTAL = auto()


class Point(NamedTuple):
    """A value of a metric. `identity` tells it from the other points of the metric in the same push."""

    metric: str
    kind: Kind
    value: float
    identity: bytes = b""


@dataclass(slots=True)
class Pushed:
    """What was read of a push."""

    points: list[Point] = field(default_factory=list)
    omitted: int = 0


def decode(data: Buffer, fields_max: int = FIELDS_MAX) -> Pushed:
    """Read a push. Raises only ProtocolViolation, whatever the bytes."""
    reader, pushed = Reader(fields_max), Pushed()
    for metric in _within(reader, [memoryview(data)], (RESOURCE_METRICS, 2, 2)):
        _read_metric(reader, metric, pushed)
    return pushed


def with_attributes(data: Buffer, attributes: Iterable[tuple[str, str]], added_bytes_max: int) -> bytes | None:
    """Return a push whose resources have these attributes too; None where so much would be added that it is not worth
    passing on: a resource takes two bytes, and a client chooses how many there are. Raises ProtocolViolation.

    Of a message that is there twice protobuf merges the fields: the attributes are added at the end of each resource.
    """
    pairs = (write_bytes(1, key.encode()) + write_bytes(2, write_bytes(1, value.encode())) for key, value in attributes)
    added = write_bytes(1, b"".join(write_bytes(1, pair) for pair in pairs))
    found = list(_within(Reader(FIELDS_MAX), [memoryview(data)], (RESOURCE_METRICS,)))
    if len(found) * len(added) > added_bytes_max:
        return None
    return b"".join(write_bytes(RESOURCE_METRICS, b"".join((resource, added))) for resource in found)


def _within(reader: Reader, messages: Iterable[memoryview], path: tuple[int, ...]) -> Iterator[memoryview]:
    """Yield the messages that are found by following these numbers of fields."""
    number, rest = path[0], path[1:]
    for message in messages:
        for found, value in reader.fields(message):
            if found == number:
                yield from _within(reader, [_message(value)], rest) if rest else [_message(value)]


def _message(value: Value) -> memoryview:
    if isinstance(value, int):
        raise ProtocolViolation("otlp: a number where a message should be")
    return value


def _fixed(value: Value) -> memoryview:
    if isinstance(value, int) or len(value) != _DOUBLE.size:
        raise ProtocolViolation("otlp: a value that is not of eight bytes")
    return value


def _number(value: Value) -> int:
    if not isinstance(value, int):
        raise ProtocolViolation("otlp: bytes where a number should be")
    return value


def _read_metric(reader: Reader, metric: memoryview, pushed: Pushed) -> None:
    name, data = "", list[tuple[int, memoryview]]()
    for number, value in reader.fields(metric):
        match number:
            case 1:
                name = _text(_message(value))
            case 5 | 7 | 9 | 10 | 11:
                data.append((number, _message(value)))
    for number, message in data:
        if not name or number > 9:
            pushed.omitted += 1
        elif number == 9:
            _read_histogram(reader, name, message, pushed)
        else:
            _read_numbers(reader, name, message, pushed, is_sum=number == 7)


def _text(data: memoryview) -> str:
    """Return a name; none where it is longer than any name should be. Raises ProtocolViolation."""
    if len(data) > NAME_BYTES_MAX:
        return ""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation("otlp: a name that is not UTF-8") from None


def _read_numbers(reader: Reader, name: str, message: memoryview, pushed: Pushed, *, is_sum: bool) -> None:
    points, temporality, grows = list[memoryview](), 0, 0
    for number, value in reader.fields(message):
        match number:
            case 1:
                points.append(_message(value))
            case 2:
                temporality = _number(value)
            case 3:
                grows = _number(value)
    kind: Kind | None = Kind.LEVEL
    if is_sum:
        kind = _kind_of(temporality) if grows else Kind.LEVEL if temporality == CUMULATIVE else None
    for point in points:
        found, identity = _number_point(reader, point)
        _keep(pushed, name, kind, found, identity)


def _kind_of(temporality: int) -> Kind | None:
    return {DELTA: Kind.DELTA, CUMULATIVE: Kind.TOTAL}.get(temporality)


def _number_point(reader: Reader, point: memoryview) -> tuple[float | None, bytes]:
    found: float | None = None
    identity: list[memoryview] = []
    for number, value in reader.fields(point):
        match number:
            case 4:
                (found,) = _DOUBLE.unpack(_fixed(value))
            case 6:
                (found,) = _INT64.unpack(_fixed(value))
            case 7:
                identity.append(_message(value))
    return found, b"".join(identity)


def _read_histogram(reader: Reader, name: str, message: memoryview, pushed: Pushed) -> None:
    points, kind = list[memoryview](), None
    for number, value in reader.fields(message):
        match number:
            case 1:
                points.append(_message(value))
            case 2:
                kind = _kind_of(_number(value))
    for point in points:
        count, total, identity = _histogram_point(reader, point)
        _keep(pushed, f"{name}.count", kind, count, identity)
        _keep(pushed, f"{name}.sum", kind, total, identity)


def _histogram_point(reader: Reader, point: memoryview) -> tuple[float | None, float | None, bytes]:
    count = total = None
    identity: list[memoryview] = []
    for number, value in reader.fields(point):
        match number:
            case 4:
                count = float(_UINT64.unpack(_fixed(value))[0])
            case 5:
                (total,) = _DOUBLE.unpack(_fixed(value))
            case 9:
                identity.append(_message(value))
    return count, total, b"".join(identity)


def _keep(pushed: Pushed, name: str, kind: Kind | None, value: float | None, identity: bytes) -> None:
    """Keep a point that stands for something. What only grows is never negative."""
    if kind is None or value is None or not isfinite(value) or (kind is not Kind.LEVEL and value < 0):
        pushed.omitted += 1
    else:
        pushed.points.append(Point(name, kind, float(value), identity))
