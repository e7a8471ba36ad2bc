"""Columns of the Delta tables, with their types in Delta, and how they come from the lake's rows and go back.

Delta's times are those of the years that Spark knows. A time after the year 9999, which no broker writes, is its end.
"""

from collections.abc import Mapping
from typing import Final

from kavka_audit.lake.columns import ENTRIES

Columns = Mapping[str, str]
DAY: Final = "day"
"""The column by which events and dead letters are partitioned."""
TIME_MAX_MS: Final = 253_402_300_799_999
DAYS_BACK_MAX: Final = 400
"""Days before the run up to which an entry stands under its own day: forged times make no more partitions than that."""
DAY_MS: Final = 86_400_000
TIMES: Final = {"written_ms": "written_time", "start_ms": "start_time", "end_ms": "end_time"}
"""Columns of the lake in milliseconds, and the timestamps that they are here."""
DELTA_TYPES: Final = {
    "INTEGER": "integer",
    "BIGINT": "long",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "BLOB": "binary",
}
DEAD: Final = ("partition", "offset", "source", "node", "sequence", "written_ms", "lost", "problem")
RECORD: Final = ("record_headers", "record_value")


def _typed(names: tuple[str, ...]) -> dict[str, str]:
    found = {TIMES.get(name, name): "timestamp" if name in TIMES else DELTA_TYPES[ENTRIES[name]] for name in names}
    return {"topic_id": "string", **found, DAY: "date"}


IN_EVENTS: Final = tuple(name for name in ENTRIES if name not in {"problem", "record_headers"})
IN_DEAD_LETTERS: Final = (*DEAD, *RECORD)
EVENTS: Final[Columns] = _typed(IN_EVENTS)
DEAD_LETTERS: Final[Columns] = _typed(IN_DEAD_LETTERS)
CHAINS: Final[Columns] = {
    "topic_id": "string",
    "partition": "integer",
    "source": "string",  # the chain; `(others)`: all those beyond what one table can follow
    "verdict": "string",  # sound, damaged; unchecked: of too many chains
    "entries": "long",  # that stand in their places
    "first_sequence": "long",
    "last_sequence": "long",  # up to which it was followed
    "last_time": "timestamp",
    "last_hash": "string",  # in hexadecimal digits
    "is_ended": "boolean",  # by its node, with a last head
    "damages": "long",
    "fault": "string",  # of the first damage, as `kavka audit verify` names it
    "fault_sequence": "long",
    "restarts": "long",  # how often it was gone on with behind records that the topic had deleted unread
    "read_time": "timestamp",  # of the run that last read an entry of it
    "is_before_hole": "boolean",  # the topic has deleted records unread behind its last entry
    "cluster": "string",  # that its heads, or the node's next chain, name; empty where its heads name none
}
ADDED: Final = frozenset({"cluster"})
"""Columns that the tables of earlier versions lack, and that the next commit of all rows adds."""


def checked(topic_id: str) -> str:
    """Return a topic's id, which may stand between quotes."""
    assert topic_id.replace("-", "").replace("_", "").isalnum(), topic_id
    return topic_id


def to_delta(names: tuple[str, ...], topic_id: str, now_ms: int) -> str:
    """Return the select list that makes rows of a table of rows of the lake."""
    found = (f'{_time(name)} AS "{TIMES[name]}"' if name in TIMES else f'"{name}"' for name in names)
    return ", ".join([f"'{checked(topic_id)}' AS topic_id", *found, f"{_day(now_ms)} AS {DAY}"])


def _time(name: str) -> str:
    return f'make_timestamptz(CASE WHEN "{name}" > {TIME_MAX_MS} THEN {TIME_MAX_MS} ELSE "{name}" END * 1000)'


def _day(now_ms: int) -> str:
    """The day of an entry; that of the run for what has no time."""
    since, until = now_ms - DAYS_BACK_MAX * DAY_MS, now_ms + DAY_MS
    within = f'least(greatest(coalesce("written_ms", {now_ms}), {since}), {until})'
    return f"CAST(make_timestamp({within} * 1000) AS DATE)"


def from_delta(names: tuple[str, ...], kind: str | None = None) -> str:
    """Return the select list that makes rows of the lake again, of a table that has these columns of it. `kind` is
    that of rows which have none.
    """
    back = {name: f'epoch_ms("{time}")' for name, time in TIMES.items()}
    found = {name: back.get(name, f'"{name}"') for name in names}
    if kind is not None:
        found["kind"] = f"'{kind}'"
    return ", ".join(f'CAST({found.get(name, "NULL")} AS {sql}) AS "{name}"' for name, sql in ENTRIES.items())
