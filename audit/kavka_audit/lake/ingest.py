"""The trail into the lake: each record once, in files of a bounded size."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from kavka_audit.lake.columns import COUNTS, ENTRIES, Columns
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.reported import missed_reports, rows_of_report
from kavka_audit.lake.rows import Found, Packed, Row, missed, row_of
from kavka_audit.lake.usual import usual_line
from kavka_audit.lake.writing import write_lines

ROWS_MAX: Final = 200_000
"""Rows of one file: some 100 MB of memory while it is made, and 4 MB of disk."""

Range = tuple[int, int, int]
"""A partition, its first offset and the one after its last."""


class Intake(NamedTuple):
    """What the records of a topic become."""

    name: str
    columns: Columns
    usual: Callable[[Packed], str | None]  # the row of nearly any record, as a line of JSON
    rows: Callable[[Found], Sequence[Row]]  # the rows of any other
    missed: Callable[[int, int, int], Row]


EVENTS: Final = Intake("entries", ENTRIES, usual_line, lambda record: (row_of(record),), missed)
REPORTS: Final = Intake("counts", COUNTS, lambda _: None, rows_of_report, missed_reports)


class Trail(Protocol):
    """A topic of the audit, as it is now."""

    @property
    def topic_id(self) -> str:
        """Its id, which another topic of the same name does not have."""

    def ranges(self) -> Iterable[Range]:
        """Return what each partition has."""

    def read(self, partition: int, first: int, until: int) -> Iterator[Packed]:
        """Give the records from `first` to before `until`, by offset; some may have been deleted meanwhile."""

    def begin(self, partition: int) -> int:
        """Return the first offset that reading has found to be there."""


@dataclass(slots=True)
class Ingested:
    """What a run has taken in. `missed` were deleted before; `dead` are no entries of a trail."""

    records: int = 0
    dead: int = 0
    missed: int = 0
    files: list[str] = field(default_factory=list)


def ingest(lake: Lake, trail: Trail, intake: Intake = EVENTS) -> Iterator[Ingested]:
    """Take in what is new; gives what has been taken in after each file."""
    so_far, next_offsets = Ingested(), lake.next_offsets(trail.topic_id, intake.name)
    for partition, begin, end in trail.ranges():
        first = next_offsets.get(partition, 0)
        rows = _missed(intake, (partition, first, begin), so_far)
        following = max(first, begin)
        for record in trail.read(partition, following, end):
            rows += _missed(intake, (partition, following, min(trail.begin(partition), record.offset)), so_far)
            rows += _counted(intake, record, so_far)
            following = record.offset + 1
            if len(rows) >= ROWS_MAX:
                yield _written(lake, intake, trail, (partition, first, following), rows, so_far)
                first, rows = following, []
        rows += _missed(intake, (partition, following, min(trail.begin(partition), end)), so_far)
        if first < end:
            # Also without a row: the offsets up to the end were looked at.
            yield _written(lake, intake, trail, (partition, first, end), rows, so_far)


def _missed(intake: Intake, gone: Range, so_far: Ingested) -> list[str]:
    """Return the line for records that were deleted before they were read; none where the range is empty."""
    partition, first, until = gone
    if first >= until:
        return []
    so_far.missed += until - first
    return [json.dumps(intake.missed(partition, first, until))]


def _counted(intake: Intake, record: Packed, so_far: Ingested) -> Sequence[str]:
    """Return the lines for a record."""
    so_far.records += 1
    if (line := intake.usual(record)) is not None:
        return (line,)
    rows = intake.rows(record)
    so_far.dead += any("problem" in row for row in rows)
    return [json.dumps(row) for row in rows]


def _written(lake: Lake, intake: Intake, trail: Trail, span: Range, rows: list[str], so_far: Ingested) -> Ingested:
    place = lake.place(trail.topic_id, *span, intake.name)
    write_lines(lake, place, rows, intake.columns)
    so_far.files.append(str(place))
    return so_far
