"""The schema of an event's JSON, as far as its row is made of it: for Spark's parser as DDL, for Python as `fitted`.

Both take the same events. A field that the schema does not name is passed over, and one that is not there is NULL. A
value of another type than the schema's makes the whole event unfit, except where the schema wants a text: any value is
its JSON there. What stands behind the object is passed over.

An event whose `metadata.version` is another than VERSION is read all the same, and kept as it stands beside its row, as
a later version may have fields that are not known here.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kavka_broker.core.audit import ocsf

VERSION: Final = ocsf.VERSION
TEXT, NUMBER, FRACTION = "VARCHAR", "BIGINT", "DOUBLE"
Schema = str | Mapping[str, "Schema"] | Sequence["Schema"]
EVENT: Final[Mapping[str, Schema]] = {
    "class_uid": NUMBER,
    "activity_id": NUMBER,
    "status_id": NUMBER,
    "disposition_id": NUMBER,
    "count": NUMBER,
    "start_time": NUMBER,
    "end_time": NUMBER,
    "metadata": {"version": TEXT},
    "actor": {"user": {"name": TEXT, "type": TEXT}, "app_name": TEXT},
    "api": {"operation": TEXT},
    "src_endpoint": {"ip": TEXT},
    "resources": [{"type": TEXT, "name": TEXT, "data": {"key": TEXT, "value": TEXT, "previous": TEXT}}],
    "unmapped": {
        "kafka": {
            "bytes": NUMBER,
            "records": NUMBER,
            "quota_type": TEXT,
            "quota_entity": TEXT,
            "quota_limit": FRACTION,
            "throttle_time_ms": NUMBER,
            "throttle_time_ms_max": NUMBER,
        }
    },
    # Of a login.
    "user": {"name": TEXT},
    "service": {"name": TEXT},
    # Of a start or stop.
    "app": {"name": TEXT},
}
DDL_TYPES: Final = {TEXT: "STRING", NUMBER: NUMBER, FRACTION: FRACTION}
NUMBERS: Final = range(-(2**63), 2**63)
ESCAPED: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
BLANKS: Final = " \t\r\n"


class UnfitError(ValueError):
    """A value is no event of the schema."""

    def __init__(self) -> None:
        super().__init__("its value does not fit the schema of events")


def ddl(schema: Schema = EVENT) -> str:
    """Return a schema as the type that Spark's SQL has for it."""
    if isinstance(schema, str):
        return DDL_TYPES[schema]
    if isinstance(schema, Mapping):
        return f"STRUCT<{', '.join(f'`{name}`: {ddl(found)}' for name, found in schema.items())}>"
    return f"ARRAY<{ddl(schema[0])}>"


def event_in(value: bytes) -> dict[str, Any]:
    """Return the event that is the value of a record, with every field of the schema. Raises UnfitError."""
    try:
        found, _ = json.JSONDecoder().raw_decode(value.decode().lstrip(BLANKS))
        event = fitted(found, EVENT)
    except (ValueError, RecursionError) as problem:  # of which UnicodeDecodeError is one
        raise UnfitError from problem
    if event is None:
        raise UnfitError
    assert isinstance(event, dict)
    return event


def fitted(value: object, schema: Schema) -> object:
    """Return a value with all the fields of its schema, and none else. Raises UnfitError."""
    if value is None:
        return None
    if schema == TEXT:
        return text_of(value)
    if isinstance(schema, Mapping) and isinstance(value, dict):
        return {name: fitted(value.get(name), found) for name, found in schema.items()}
    if isinstance(schema, Sequence) and not isinstance(schema, str) and isinstance(value, list):
        return [fitted(found, schema[0]) for found in value]
    if _is_number(value, schema):
        return value
    raise UnfitError


def text_of(value: object) -> str:
    """Return a text as it is, and of any other value its JSON."""
    if isinstance(value, str):
        return whole(value)
    return ESCAPED.sub(_as_java, whole(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


def _as_java(escaped: re.Match[str]) -> str:
    """Return an escaped character as Spark's writer of JSON has it: with capital digits."""
    return escaped[0][:2] + escaped[0][2:].upper()


def whole(text: str) -> str:
    """Return text that can be written as UTF-8: JSON may hold half of a character."""
    return text.encode(errors="replace").decode()


def _is_number(value: object, schema: Schema) -> bool:
    if isinstance(value, bool):
        return False
    if schema == NUMBER:
        return isinstance(value, int) and value in NUMBERS
    return schema == FRACTION and isinstance(value, int | float)
