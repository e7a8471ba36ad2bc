"""What stands in the topics that clients tell of, counted from the topics themselves.

The broker's own count would be what it believes to have appended; what is in the log now, read as a consumer reads it,
is what there is, also after an election that cut the log. Each record is read once: where the lake ends, the next run
goes on. Reading begins at the first offset that any client has told, and at the end of a partition of which none has
told anything: what stood there before clients counted is not judged, and neither is what was deleted before it was
counted. Both are rows of the tier `uncounted`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from kavka_audit.completeness.offset_ranges import Ranges
from kavka_audit.lake.client_report_rows import rows_of
from kavka_audit.lake.columns import COUNTS
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Range
from kavka_audit.lake.rows import Row
from kavka_audit.lake.writing import write

RUNS_MAX: Final = 50_000
RECORDS_MAX: Final = 1_000_000
"""Runs and records of one file: what a run that dies has to read again."""
Begins = Mapping[str, Mapping[int, int]]


class UncountedError(Exception):
    """A topic cannot be read to its end; the message says why."""


class Stamped(Protocol):
    """A record of a topic."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...


class Log(Protocol):
    """A topic, as it is now: what is committed. `ranges` and `read` may raise UncountedError."""

    @property
    def topic(self) -> str: ...
    @property
    def topic_id(self) -> str: ...
    def ranges(self) -> Iterable[Range]: ...
    def read(self, partition: int, first: int, until: int) -> Iterable[Stamped]: ...
    def begin(self, partition: int) -> int: ...


def told_of(lake: Lake) -> Begins:
    """Return the first offset of which clients have told, by topic and partition."""
    found: dict[str, dict[int, int]] = {}
    if files := lake.files("counts"):
        with connected() as connection:
            rows = connection.read_parquet(files, union_by_name=True)
            told = rows.filter("tier IN ('producer', 'consumer') AND topic IS NOT NULL")
            for topic, partition, first in told.aggregate("topic, partition, min(first_offset)").fetchall():
                found.setdefault(topic, {})[partition] = 0 if first is None else first
    return found


def count(lake: Lake, log: Log, begins: Mapping[int, int], now_ms: int) -> Iterator[int]:
    """Count what is new in a topic; gives the number of records counted since the last file. Raises UncountedError."""
    next_offsets = lake.next_offsets(log.topic_id, "counts")
    for partition, begin, end in log.ranges():
        first = next_offsets.get(partition, 0)
        start = max(first, begin)
        if partition not in next_offsets:
            start = max(start, min(begins.get(partition, end), end))
        rows = _uncounted(log.topic, partition, first, start)
        ranges, records = Ranges(), 0
        for record in log.read(partition, start, end) if start < end else ():
            rows += _uncounted(log.topic, partition, start, min(log.begin(partition), record.offset))
            ranges.add(log.topic, partition, record.timestamp, record.offset)
            records, start = records + 1, record.offset + 1
            if records >= RECORDS_MAX or ranges.size >= RUNS_MAX:
                _write(lake, log, (partition, first, start), rows, ranges, now_ms)
                yield records
                first, rows, ranges, records = start, [], Ranges(), 0
        rows += _uncounted(log.topic, partition, start, min(log.begin(partition), end))
        if first < end:
            _write(lake, log, (partition, first, end), rows, ranges, now_ms)
            yield records


def _write(lake: Lake, log: Log, span: Range, rows: list[Row], ranges: Ranges, now_ms: int) -> None:
    counted: list[Row] = [{"tier": "log", "told_ms": now_ms} | row for found in ranges for row in rows_of(found)]
    write(lake, lake.place(log.topic_id, *span, "counts"), [*rows, *counted], COUNTS)


def _uncounted(topic: str, partition: int, first: int, until: int) -> list[Row]:
    """Return the row for records that are not looked at, or were deleted first; none where the range is empty."""
    if first >= until:
        return []
    where = {"topic": topic, "partition": partition}
    return [{"tier": "uncounted", **where, "first_offset": first, "last_offset": until - 1}]
