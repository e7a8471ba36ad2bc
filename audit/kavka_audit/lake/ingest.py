"""The trail into the lake: each record once, in files of a bounded size."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from kavka_audit.lake.batch_parser import FORMS
from kavka_audit.lake.client_report_rows import missed_reports, rows_of_report
from kavka_audit.lake.columns import COUNTS, ENTRIES
from kavka_audit.lake.directory import PART, Lake
from kavka_audit.lake.fast_parser import usual_line
from kavka_audit.lake.partition_reader import Intake, Taking
from kavka_audit.lake.rows import Batch, missed, row_of

ROWS_MAX: Final = 250_000
"""Rows of one file, which has some 5 MB. Of REPORTS, whose records have many rows, it is those of a batch more."""

Range = tuple[int, int, int]
"""A partition, its first offset and the one after its last."""


EVENTS: Final = Intake("entries", ENTRIES, FORMS, usual_line, lambda record: (row_of(record),), missed)
REPORTS: Final = Intake("counts", COUNTS, (), lambda _: None, rows_of_report, missed_reports)


class Trail(Protocol):
    """A topic of the audit, as it is now."""

    @property
    def topic_id(self) -> str:
        """Its id, which another topic of the same name does not have."""

    def ranges(self) -> Iterable[Range]:
        """Return what each partition has."""

    def batches(self, partition: int, first: int, until: int) -> Iterator[Batch]:
        """Give the batches that have the records from `first` to before `until`, by offset; some may have been deleted
        meanwhile, and the first batch and the last may have others too.
        """

    def begin(self, partition: int) -> int:
        """Return the first offset that reading has found to be there."""


@dataclass(slots=True)
class Ingested:
    """What a run has taken in. `missed` were deleted before; `dead` are no entries of a trail."""

    records: int = 0
    dead: int = 0
    missed: int = 0
    files: list[str] = field(default_factory=list)


class Taken(NamedTuple):
    """What a file has: the records of a partition from `first` to before `until`."""

    partition: int
    first: int
    until: int
    records: int
    dead: int
    missed: int


def ingest(lake: Lake, trail: Trail, intake: Intake = EVENTS, rows_max: int | None = None) -> Iterator[Ingested]:
    """Take in what is new, `rows_max` rows a file and a batch more; gives what was read so far for each file. At the
    end all files are written.
    """
    so_far = Ingested()
    for partition, begun, until in spans(lake, trail, intake, rows_max):
        first = begun
        while first < until:
            part = lake.place(trail.topic_id, partition, first, until, intake.name).with_suffix(PART)
            taken = take(trail, (partition, first, until), part, intake, rows_max=rows_max)
            settle(lake, trail.topic_id, taken, part, so_far, intake)
            yield so_far
            first = taken.until


def spans(lake: Lake, trail: Trail, intake: Intake = EVENTS, rows_max: int | None = None) -> Iterator[Range]:
    """Give what is to be read, in pieces that become a file each. What was deleted before belongs to the first."""
    size = ROWS_MAX if rows_max is None else rows_max
    next_offsets = lake.next_offsets(trail.topic_id, intake.name)
    for partition, begin, end in trail.ranges():
        first = next_offsets.get(partition, 0)
        while first < end:
            until = min(end, max(first, begin) + size)
            yield partition, first, until
            first = until


def take(trail: Trail, span: Range, part: Path, intake: Intake = EVENTS, rows_max: int | None = None) -> Taken:
    """Read records of a partition and write their rows into a file. Ends early where they have very many."""
    partition, first, _ = span
    with Taking(intake, partition, first, trail.begin, part) as taking:
        until = read(trail, span, taking, rows_max=rows_max)
        # Also without a row: the offsets up to the end were looked at.
        taking.write()
    return taken_by(taking, span, until)


def read(trail: Trail, span: Range, taking: Taking, rows_max: int | None = None, *, ends_at_holes: bool = False) -> int:
    """Read records of a partition; returns the offset behind them. Ends early where they have very many rows, and
    with `ends_at_holes` before records that were deleted meanwhile, so that these stand first in the next batch.
    """
    partition, _, until = span
    most = ROWS_MAX if rows_max is None else rows_max
    taking.miss_deleted(until)
    if taking.following < until:
        for batch in trail.batches(partition, taking.following, until):
            if ends_at_holes and taking.is_before_hole(batch.base_offset):
                until = taking.following
                break
            taking.add(batch, until)
            if taking.rows >= most:
                until = taking.following
                break
    if ends_at_holes and taking.is_before_hole(until):
        until = taking.following
    taking.miss_deleted(until)
    return until


def taken_by(taking: Taking, span: Range, until: int) -> Taken:
    """Return what was read of a range, up to an offset."""
    partition, first, _ = span
    return Taken(partition, first, until, taking.records, taking.dead, taking.missed)


def settle(lake: Lake, topic_id: str, taken: Taken, part: Path, so_far: Ingested, intake: Intake = EVENTS) -> None:
    """Have a file that is written take its place, and count what it has."""
    place = lake.place(topic_id, taken.partition, taken.first, taken.until, intake.name)
    lake.settle(part, place)
    so_far.records += taken.records
    so_far.dead += taken.dead
    so_far.missed += taken.missed
    so_far.files.append(str(place))
