"""A record of the audit topic as a row of the lake.

A record that is no entry of a trail, or whose event is not what a broker writes, becomes a row of the kind `dead` with
the reason: it is counted and shown, and stops nothing.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from kavka_broker.core.audit.chain import Entry, Kind
from kavka_broker.core.audit.cloud_events import entry_of

VALUE_BYTES_MAX: Final = 1 << 20
"""The longest event that is read; brokers write some kilobytes."""
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
STARTS: Final = {3: "START", 4: "STOP"}
"""What a node does, by the activity of OCSF."""
Row = dict[str, object]


class Found(Protocol):
    """A record of the audit topic, as Kafka clients give it."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
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
    try:
        entry = entry_of(record.headers, record.value)
        row |= _of_entry(entry)  # which has its place in a chain, also where its event cannot be read
        if len(record.value or b"") > VALUE_BYTES_MAX:
            raise ValueError(f"its value has {len(record.value or b'')} bytes; {VALUE_BYTES_MAX} are read")
        return row | (_of_event(entry) if entry.kind is Kind.EVENT else {})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        words = f"{problem!s} is missing" if isinstance(problem, KeyError) else str(problem)
        return row | {"kind": "dead", "problem": _whole(words[:500])}


def missed(partition: int, first: int, until: int) -> Row:
    """Return the row for records that the topic had deleted before they were read."""
    return {"partition": partition, "offset": first, "kind": "missed", "lost": until - first}


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
    """Raises ValueError, LookupError, TypeError or AttributeError where the event is not what a broker writes."""
    event = json.loads(entry.value)
    if not isinstance(event, dict):
        raise TypeError("its value is no JSON object")
    start_ms, end_ms = _number(event, "start_time"), _number(event, "end_time")
    if not start_ms <= end_ms <= entry.time_ms + AHEAD_MS_MAX:
        raise ValueError(f"end_time: {end_ms} is not between start_time and an hour after the entry was written")
    row: Row = {
        "class_uid": _number(event, "class_uid", CLASS_MAX),
        "start_ms": start_ms,
        "end_ms": end_ms,
        "times": _number(event, "count"),
    }
    if row["class_uid"] == LIFECYCLES:
        return row | _of_lifecycle(event)
    row["address"] = _text_or_none(event["src_endpoint"], "ip")
    return row | (_of_login(event) if row["class_uid"] == LOGINS else _of_request(event))


def _of_lifecycle(event: Mapping[str, Any]) -> Row:
    node = _text(event["app"], "name").removeprefix("kavka node ")
    return {"operation": STARTS.get(_number(event, "activity_id")), "resource_type": "node", "resource": node}


def _of_login(event: Mapping[str, Any]) -> Row:
    is_known = _number(event, "status_id") == 1
    return {
        "outcome": "allowed" if is_known else "denied",
        "operation": "LOGIN",
        "principal": f"User:{_text(event['user'], 'name')}" if is_known else None,
        "resource_type": "listener",
        "resource": _text(event["service"], "name").removeprefix("kafka listener "),
    }


def _of_request(event: Mapping[str, Any]) -> Row:
    user, resource = event["actor"]["user"], event["resources"][0]
    changed, sums = resource.get("data") or {}, (event.get("unmapped") or {}).get("kafka") or {}
    limit = sums.get("quota_limit")
    if limit is not None and not (isinstance(limit, int | float) and 0 <= limit <= LIMIT_MAX):
        raise ValueError(f"quota_limit: no number from 0 to {LIMIT_MAX}")
    entity = sums.get("quota_entity")
    if entity is not None and not isinstance(entity, dict):
        raise TypeError("quota_entity: no object")
    return {
        "outcome": OUTCOMES.get(_number(event, "disposition_id")),
        "operation": _text(event["api"], "operation"),
        "principal": f"{_text(user, 'type')}:{_text(user, 'name')}",
        "client_id": _text_or_none(event["actor"], "app_name"),
        "resource_type": _text(resource, "type"),
        "resource": _text(resource, "name"),
        "bytes": _number_or_none(sums, "bytes"),
        "records": _number_or_none(sums, "records"),
        "quota_type": _text_or_none(sums, "quota_type"),
        "quota_entity": None if entity is None else json.dumps(entity, sort_keys=True),
        "quota_limit": limit,
        "throttle_time_ms": _number_or_none(sums, "throttle_time_ms"),
        "throttle_time_ms_max": _number_or_none(sums, "throttle_time_ms_max"),
        "config_key": _text_or_none(changed, "key"),
        "config_value": _text_or_none(changed, "value"),
        "config_previous": _text_or_none(changed, "previous"),
    }


def _number(fields: Mapping[str, Any], name: str, greatest: int = NUMBER_MAX) -> int:
    value = fields[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= greatest:
        raise ValueError(f"{name}: no whole number from 0 to {greatest}")
    return value


def _number_or_none(fields: Mapping[str, Any], name: str) -> int | None:
    return None if fields.get(name) is None else _number(fields, name)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise TypeError(f"{name}: no text")
    return _whole(value)


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _whole(text: str) -> str:
    """Return text that can be written as UTF-8: JSON may hold half of a character."""
    return text.encode(errors="replace").decode()
