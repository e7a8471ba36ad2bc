"""Records as lines of JSON: what `kavka consume` prints, `kavka produce` reads.

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": "2026-11-28T19:00:00.000Z",
     "key": "a", "value": "{\\"id\\": 1}", "headers": {"trace": "f00"}}

Bytes that are no UTF-8 are an object with `base64`, and null is a record without a key or value. A header that stands
more than once is a list.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from kavka_operator.domain.json_bytes import as_text

FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
WRITTEN: Final = ("partition", "key", "value", "headers")
"""The fields of a record to be written; topic, offset and timestamp of a line that was read are passed over."""

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})

Header = tuple[str, bytes | None]


class BadLineError(ValueError):
    """A line that is no record; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None


def as_line(record: Any, decoded: Mapping[str, Any] = EMPTY) -> str:
    """A record of the client library as one line; fields that are `decoded` stand in place of its own."""
    moment = datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": moment.replace("+00:00", "Z"),
        "key": as_text(record.key),
        "value": as_text(record.value),
    }
    fields |= decoded
    if record.headers:
        fields["headers"] = _headers_as_text(record.headers)
    return json.dumps(fields, ensure_ascii=False)


def _headers_as_text(headers: Iterable[Header]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(as_text(value))
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def record_of(line: str) -> NewRecord:
    """The record that a line of JSON declares. Raises BadLineError."""
    try:
        fields = json.loads(line)
    except ValueError as problem:
        raise BadLineError(f"is not JSON: {problem}") from None
    if not isinstance(fields, dict) or "value" not in fields:
        raise BadLineError('is not an object with "value"; write {"value": "..."}, or use --lines for plain text')
    if unknown := [name for name in fields if name not in FIELDS]:
        raise BadLineError(f'"{unknown[0]}" is not a field of a record; there are {", ".join(WRITTEN)}')
    partition = fields.get("partition")
    if partition is not None and (type(partition) is not int or partition < 0):
        raise BadLineError(f"partition: {partition!r} is not a number of a partition")
    key, value = bytes_of(fields.get("key"), "key"), bytes_of(fields["value"], "value")
    return NewRecord(value, key, tuple(_headers_of(fields.get("headers"))), partition)


def bytes_of(given: Any, field: str) -> bytes | None:
    """The bytes that a field of a line stands for. Raises BadLineError."""
    match given:
        case None:
            return None
        case str():
            return given.encode()
        case {"base64": str(text), **rest} if not rest:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError) as problem:
                raise BadLineError(f"{field}: base64: {problem}") from None
    raise BadLineError(f'{field}: is not text; write "...", null or {{"base64": "..."}}')


def _headers_of(given: Any) -> list[Header]:
    if given is None:
        return []
    if not isinstance(given, dict):
        raise BadLineError('headers: is not an object; write {"name": "value"}')
    found: list[Header] = []
    for name, values in given.items():
        several = values if isinstance(values, list) else [values]
        found += [(name, bytes_of(value, f"headers.{name}")) for value in several]
    return found
