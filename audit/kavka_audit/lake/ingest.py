"""The trail into the lake: each record once, in files of a bounded size."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.rows import Found, Row, missed, row_of
from kavka_audit.lake.writing import write

ROWS_MAX: Final = 50_000
"""Rows of one file: some 30 MB of memory while it is made."""


Range = tuple[int, int, int]
"""A partition, its first offset and the one after its last."""


class Trail(Protocol):
    """The audit topic of a cluster, as it is now."""

    @property
    def topic_id(self) -> str:
        """Its id, which another topic of the same name does not have."""

    def ranges(self) -> Iterable[Range]:
        """Return what each partition has."""

    def read(self, partition: int, first: int, until: int) -> Iterator[Found]:
        """Give the records from `first` to before `until`, by offset; some may have been deleted meanwhile."""


@dataclass(slots=True)
class Ingested:
    """What a run has taken in. `missed` were deleted before; `dead` are no entries of a trail."""

    records: int = 0
    dead: int = 0
    missed: int = 0
    files: list[str] = field(default_factory=list)


def ingest(lake: Lake, trail: Trail) -> Iterator[Ingested]:
    """Take in what is new; gives what has been taken in after each file."""
    so_far, next_offsets = Ingested(), lake.next_offsets(trail.topic_id)
    for partition, begin, end in trail.ranges():
        first = next_offsets.get(partition, 0)
        rows: list[Row] = []
        if first < begin:
            so_far.missed += begin - first
            rows.append(missed(partition, first, begin))
        start = max(first, begin)
        for record in trail.read(partition, start, end):
            rows.append(row_of(record))
            if len(rows) >= ROWS_MAX:
                yield _written(lake, trail, (partition, first, record.offset + 1), rows, so_far)
                first, rows = record.offset + 1, []
        if first < end:
            # Also without a row: the offsets up to the end were looked at.
            yield _written(lake, trail, (partition, first, end), rows, so_far)


def _written(lake: Lake, trail: Trail, span: tuple[int, int, int], rows: list[Row], so_far: Ingested) -> Ingested:
    place = lake.place(trail.topic_id, *span)
    write(lake, place, rows, ENTRIES)
    so_far.records += sum(row["kind"] != "missed" for row in rows)
    so_far.dead += sum(row["kind"] == "dead" for row in rows)
    so_far.files.append(str(place))
    return so_far
