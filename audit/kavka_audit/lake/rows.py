"""A record of the audit topic as a row of the lake.

A record that is no entry of a trail, or whose event is not what a broker writes, becomes a row of the kind `dead` with
the reason and the record itself: it is counted and shown, can be read again, and stops nothing.

`row_of` says what the row of any record is. `spark.rows` makes the same rows by expressions of Spark.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from kavka_audit.lake.event_schema import VERSION, event_in, whole
from kavka_broker.core.audit.chain import Entry, Kind
from kavka_broker.core.audit.cloud_events import entry_of

VALUE_BYTES_MAX: Final = 1 << 20
"""The longest event that is read; brokers write some kilobytes."""
DEAD_BYTES_MAX: Final = 3 << 19
"""How much is kept of the value of a dead record, and of its headers as JSON: more than a record that is not compressed
has in a topic of `max.message.bytes` unless that is raised. One that is compressed may have 256 MiB.
"""
AHEAD_MS_MAX: Final = 3_600_000
"""How far an event may be ahead of the time at which its entry was written."""
NUMBER_MAX: Final = 2**63 - 1
CLASS_MAX: Final = 2**31 - 1
"""The column of the class is an INTEGER."""
LIMIT_MAX: Final = 1e300
OUTCOMES: Final = {1: "allowed", 2: "denied", 14: "delayed"}
"""By the disposition of OCSF."""
LOGINS: Final = 3002
LIFECYCLES: Final = 6002
REQUESTS: Final = 6003
NODE, LISTENER = "kavka node ", "kafka listener "
"""What stands before the name of a node, and of a listener."""
LONG_WORDS: Final = f"its value is longer than {VALUE_BYTES_MAX} bytes"
TIME_WORDS: Final = "end_time: not between start_time and an hour after the entry was written"
LIMIT_WORDS: Final = f"quota_limit: no number from 0 to {LIMIT_MAX:g}"
ENTITY_WORDS: Final = "quota_entity: no object"
TEXT_WORDS: Final = "no text"
STARTS: Final = {3: "START", 4: "STOP"}
"""What a node does, by the activity of OCSF."""
SUMS: Final = ("bytes", "records", "throttle_time_ms", "throttle_time_ms_max")
"""Numbers that a request may have."""
Row = dict[str, object]
Headers = Sequence[tuple[str, bytes | None]]


class Found(Protocol):
    """A record of the audit topic, as Kafka clients give it."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def value(self) -> bytes | None: ...


class Packed(Found, Protocol):
    """A record whose headers are taken apart when they are asked for."""

    @property
    def packed_headers(self) -> bytes:
        """The headers as they stand in a batch: their number, and the name and the value of each behind its length."""


class Batch(Protocol):
    """Records that stand together in a partition. What takes them apart raises what the trail raises."""

    @property
    def base_offset(self) -> int:
        """The offset of the first record, or one before it."""

    @property
    def count(self) -> int:
        """How many records there are."""

    def packed(self) -> bytes:
        """Return the records as they stand in a batch of Kafka's newest format, one behind the other."""

    def record_at(self, packed: bytes, at: int) -> tuple[Packed, int]:
        """Return the record that stands at a place of these bytes, and the place behind it."""

    def records(self) -> Sequence[Packed]:
        """Return all records, if nothing else stands in the batch."""


def row_of(record: Found) -> Row:
    """Return the row of a record; a column that is left out is NULL."""
    row: Row = {"partition": record.partition, "offset": record.offset}
    headers: Headers | None = None
    try:
        headers = record.headers
        row |= _of_entry(
            entry := _entry(headers, record.value)
        )  # which has its place in a chain, also where its event cannot be read
        if len(record.value or b"") > VALUE_BYTES_MAX:
            raise ValueError(LONG_WORDS)
        return row | (_of_event(entry) if entry.kind is Kind.EVENT else {})
    except ValueError as problem:
        return row | {"kind": "dead", "problem": str(problem), **_kept(headers, record.value)}


def missed(partition: int, first: int, until: int) -> Row:
    """Return the row for records that the topic had deleted before they were read."""
    return {"partition": partition, "offset": first, "kind": "missed", "lost": until - first}


def header_words(name: str) -> str:
    """Return the reason for which a record is no entry, by the header that shows it."""
    return f"{name}: not as a node writes it"


def number_words(name: str, greatest: int = NUMBER_MAX) -> str:
    """Return the reason for which an event is none, by the field that is no number."""
    return f"{name}: no whole number from 0 to {greatest}"


def _entry(headers: Headers, value: bytes | None) -> Entry:
    try:
        return entry_of(headers, value)
    except ValueError as problem:
        raise ValueError(header_words(str(problem).partition(":")[0])) from problem


def _kept(headers: Headers | None, value: bytes | None) -> Row:
    """Return what is kept of a dead record: the beginning of its value, and its headers, unless they are longer."""
    text = None if headers is None else _text_of(headers)
    is_long = text is not None and len(text.encode()) > DEAD_BYTES_MAX
    return {
        "record_headers": None if is_long else text,
        "record_value": None if value is None else value[:DEAD_BYTES_MAX],
    }


def headers_in(text: str) -> Headers:
    """Return the headers of a dead record of which this is the JSON."""
    return [(found["key"], None if "value" not in found else b64decode(found["value"])) for found in json.loads(text)]


def _text_of(headers: Headers) -> str:
    """Return headers as JSON: their keys, and their values in base64; one without a value has none."""
    told = [
        {"key": whole(name)} | ({} if value is None else {"value": b64encode(value).decode()})
        for name, value in headers
    ]
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _of_entry(entry: Entry) -> Row:
    node, _, _ = entry.source.partition("-")
    return {
        "kind": entry.kind.value,
        "source": entry.source,
        "node": int(node) if node.isascii() and node.isdecimal() and len(node) < 10 else None,
        "sequence": entry.sequence,
        "written_ms": entry.time_ms,
        "lost": entry.lost,
    }


def _of_event(entry: Entry) -> Row:
    """Raises ValueError where the event is not what a broker writes."""
    event = event_in(entry.value)
    start_ms, end_ms = _number(event, "start_time"), _number(event, "end_time")
    if not start_ms <= end_ms <= entry.time_ms + AHEAD_MS_MAX:
        raise ValueError(TIME_WORDS)
    row: Row = {
        "class_uid": _number(event, "class_uid", CLASS_MAX),
        "start_ms": start_ms,
        "end_ms": end_ms,
        "times": _number(event, "count"),
    }
    if _at(event, "metadata", "version") != VERSION:
        row["record_value"] = entry.value
    if row["class_uid"] == LIFECYCLES:
        return row | _of_lifecycle(event)
    row["address"] = _at(event, "src_endpoint", "ip")
    return row | (_of_login(event) if row["class_uid"] == LOGINS else _of_request(event))


def _of_lifecycle(event: Mapping[str, Any]) -> Row:
    node = _text(event, "app", "name").removeprefix(NODE)
    return {"operation": STARTS.get(_number(event, "activity_id")), "resource_type": "node", "resource": node}


def _of_login(event: Mapping[str, Any]) -> Row:
    is_known = _number(event, "status_id") == 1
    return {
        "outcome": "allowed" if is_known else "denied",
        "operation": "LOGIN",
        "principal": f"User:{_text(event, 'user', 'name')}" if is_known else None,
        "resource_type": "listener",
        "resource": _text(event, "service", "name").removeprefix(LISTENER),
    }


def _of_request(event: Mapping[str, Any]) -> Row:
    resource = {"resources": next(iter(event["resources"] or ()), None)}
    sums = _at(event, "unmapped", "kafka") or {}
    limit, entity = sums.get("quota_limit"), sums.get("quota_entity")
    row: Row = {
        "outcome": OUTCOMES.get(_number(event, "disposition_id")),
        "operation": _text(event, "api", "operation"),
        "principal": f"{_text(event, 'actor', 'user', 'type')}:{_text(event, 'actor', 'user', 'name')}",
        "client_id": _at(event, "actor", "app_name"),
        "resource_type": _text(resource, "resources", "type"),
        "resource": _text(resource, "resources", "name"),
        **{name: None if sums.get(name) is None else _number(sums, name) for name in SUMS},
        "quota_type": sums.get("quota_type"),
        "quota_entity": entity,
        "quota_limit": limit,
        **{f"config_{name}": _at(resource, "resources", "data", name) for name in ("key", "value", "previous")},
    }
    if limit is not None and not 0 <= limit <= LIMIT_MAX:
        raise ValueError(LIMIT_WORDS)
    if entity is not None and not entity.startswith("{"):
        raise ValueError(ENTITY_WORDS)
    return row


def _at(event: Mapping[str, Any], *path: str) -> Any:
    """Return what stands at a path; None where there is nothing."""
    found: Any = event
    for name in path:
        found = None if found is None else found[name]
    return found


def _number(fields: Mapping[str, Any], name: str, greatest: int = NUMBER_MAX) -> int:
    value = fields[name]
    if value is None or not 0 <= value <= greatest:
        raise ValueError(number_words(name, greatest))
    return int(value)


def _text(event: Mapping[str, Any], *path: str) -> str:
    value = _at(event, *path)
    if value is None:
        raise ValueError(f"{'.'.join(path)}: {TEXT_WORDS}")
    return str(value)
