"""Pushes of metrics as clients write them: OpenTelemetry's messages, built by hand."""

from struct import pack

from kavka_broker.core.telemetry.protobuf import write_bytes, write_varint

DELTA, CUMULATIVE = 1, 2


def number(field: int, value: int) -> bytes:
    """A field that is a number."""
    return write_varint(field << 3) + write_varint(value)


def double(field: int, value: float) -> bytes:
    """A field that is a double."""
    return write_varint(field << 3 | 1) + pack("<d", value)


def attribute(key: str, value: str) -> bytes:
    """A KeyValue with a text."""
    return write_bytes(1, key.encode()) + write_bytes(2, write_bytes(1, value.encode()))


def point(value: float, **attributes: str) -> bytes:
    """A NumberDataPoint: an int as an int, anything else as a double."""
    data = write_varint(6 << 3 | 1) + pack("<q", value) if isinstance(value, int) else double(4, value)
    return data + b"".join(write_bytes(7, attribute(key, said)) for key, said in attributes.items())


def gauge(name: str, *values: float | bytes) -> bytes:
    """A Metric that is a gauge, of values or points."""
    data = b"".join(write_bytes(1, one if isinstance(one, bytes) else point(one)) for one in values)
    return write_bytes(1, name.encode()) + write_bytes(5, data)


def flow(name: str, *values: float | bytes, temporality: int = DELTA, grows: bool = True) -> bytes:
    """A Metric that is a sum."""
    data = b"".join(write_bytes(1, one if isinstance(one, bytes) else point(one)) for one in values)
    return write_bytes(1, name.encode()) + write_bytes(7, data + number(2, temporality) + number(3, int(grows)))


def histogram(name: str, count: int, total: float, temporality: int = DELTA) -> bytes:
    """A Metric that is a histogram of one point."""
    data = write_varint(4 << 3 | 1) + pack("<Q", count) + double(5, total)
    return write_bytes(1, name.encode()) + write_bytes(9, write_bytes(1, data) + number(2, temporality))


def metrics(*found: bytes, **resource: str) -> bytes:
    """A push of these metrics, by a resource with these attributes."""
    scope = write_bytes(1, write_bytes(1, b"scope")) + b"".join(write_bytes(2, one) for one in found)
    said = b"".join(write_bytes(1, attribute(key, value)) for key, value in resource.items())
    return write_bytes(1, write_bytes(1, said) + write_bytes(2, scope))
