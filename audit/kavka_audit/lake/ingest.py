"""The trail into the lake: each record once, in files of a bounded size."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, Self

from kavka_audit.lake.columns import COUNTS, ENTRIES, Columns
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.reported import missed_reports, rows_of_report
from kavka_audit.lake.rows import Found, Packed, Row, missed, row_of
from kavka_audit.lake.usual import usual_line
from kavka_audit.lake.writing import write_lines

ROWS_MAX: Final = 250_000
"""Rows of one file, which has some 5 MB; two such files are made at a time, in 120 MB of memory each."""

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
    """Take in what is new; gives what was read so far for each file. At the end all files are written."""
    so_far, next_offsets = Ingested(), lake.next_offsets(trail.topic_id, intake.name)
    with _Writer(lake, trail.topic_id, intake, so_far) as writer:
        for partition, begin, end in trail.ranges():
            first = next_offsets.get(partition, 0)
            rows = _missed(intake, (partition, first, begin), so_far)
            following = max(first, begin)
            for record in trail.read(partition, following, end):
                if record.offset > following:
                    rows += _missed(intake, (partition, following, min(trail.begin(partition), record.offset)), so_far)
                rows += _counted(intake, record, so_far)
                following = record.offset + 1
                if len(rows) >= ROWS_MAX:
                    yield writer.write((partition, first, following), rows)
                    first, rows = following, []
            rows += _missed(intake, (partition, following, min(trail.begin(partition), end)), so_far)
            if first < end:
                # Also without a row: the offsets up to the end were looked at.
                yield writer.write((partition, first, end), rows)


class _Writer:
    """Writes files by a thread of its own, one after the other, while the rows of the next are made: DuckDB computes
    without the interpreter's lock. No more than one file waits.
    """

    def __init__(self, lake: Lake, topic_id: str, intake: Intake, so_far: Ingested) -> None:
        self._lake, self._topic_id, self._intake, self._so_far = lake, topic_id, intake, so_far
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._last: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True)
        self._wait()

    def write(self, span: Range, rows: list[str]) -> Ingested:
        """Have rows written once the file before is; returns what was read. Raises what writing that file raised."""
        self._wait()
        self._last = self._thread.submit(self._write, span, rows)
        return self._so_far

    def _wait(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def _write(self, span: Range, rows: list[str]) -> None:
        place = self._lake.place(self._topic_id, *span, self._intake.name)
        write_lines(self._lake, place, rows, self._intake.columns)
        self._so_far.files.append(str(place))


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
