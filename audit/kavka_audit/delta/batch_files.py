"""Reads a batch of the trail, and writes its rows as files of the Delta tables, which a commit then names.

The files are written beside the tables, in whichever process reads, and hold what they hold in the table: nothing is
written twice. They take their places by `Table.add`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from kavka_audit.delta.columns import DAY, DEAD_LETTERS, EVENTS, IN_DEAD_LETTERS, IN_EVENTS, Columns, to_delta
from kavka_audit.lake.chain_steps import Links, Step
from kavka_audit.lake.directory import PART
from kavka_audit.lake.ingest import EVENTS as ENTRIES
from kavka_audit.lake.ingest import Range, Taken, Trail, read, taken_by
from kavka_audit.lake.partition_reader import Taking

IS_DEAD: Final = "kind = 'dead'"
NAMES_OF_FILES: Final = "part-00000-{uuid}-c000.zstd"
"""As writers of Delta name files; DuckDB puts what no other name has in the place of `{uuid}`."""
OPTIONS: Final = (
    f"FORMAT parquet, COMPRESSION zstd, PARTITION_BY ({DAY}), FILENAME_PATTERN '{NAMES_OF_FILES}', RETURN_STATS"
)
SHAPES: Final = {"dead_letters": (IN_DEAD_LETTERS, DEAD_LETTERS), "events": (IN_EVENTS, EVENTS)}
"""The columns that a table has of the lake's, and its own with their types."""
NUMBERS: Final = ("integer", "long")
"""Types of columns whose least and greatest value a commit tells."""


class RowFile(NamedTuple):
    """A file of Parquet that is to be one of a table: where it is, its day, its size, and statistics as JSON."""

    place: Path
    day: str
    size_bytes: int
    stats: str


class ReadBatch(NamedTuple):
    """A range of a partition that was read, its entries as steps of their chains, and its rows by table."""

    taken: Taken
    steps: list[Step]
    dead_letters: list[RowFile]
    events: list[RowFile]


def staged_in(part: Path) -> tuple[Path, Path]:
    """Return the directories beside `part` for files of dead letters and of events."""
    first, second = (part.with_name(f"{part.name}.{name}{PART}") for name in SHAPES)
    return first, second


@dataclass(frozen=True, slots=True)
class BatchReader:
    """Reads batches, in this process or another one, to which it is pickled. `now_ms` is when the run began."""

    topic_id: str
    now_ms: int

    def __call__(self, trail: Trail, span: Range, part: Path) -> ReadBatch:
        """Read a range, or its beginning where it has a hole; files stand beside `part`."""
        partition, first, _ = span
        links = Links()
        with Taking(ENTRIES, partition, first, trail.begin, part, links) as taking:
            until = read(trail, span, taking, ends_at_holes=True)
            with duckdb.connect(config={"threads": 1}) as connection:  # one of its own, as a view is made in it
                others, usual = taking.relations(connection)
                rows = others.filter(f"NOT {IS_DEAD}")
                for found in usual:
                    rows = rows.union(found)
                of_dead, of_events = staged_in(part)
                dead_letters = self._write(connection, others.filter(IS_DEAD), of_dead, "dead_letters")
                events = self._write(connection, rows, of_events, "events")
        return ReadBatch(taken_by(taking, span, until), links.steps(), dead_letters, events)

    def _write(
        self, connection: duckdb.DuckDBPyConnection, rows: duckdb.DuckDBPyRelation, directory: Path, table: str
    ) -> list[RowFile]:
        """Write rows of the lake as files of a table, one for each day."""
        names, columns = SHAPES[table]
        rows.project(to_delta(names, self.topic_id, self.now_ms)).create_view("staged", replace=True)
        place = str(directory).replace("'", "''")
        found = connection.execute(f"COPY staged TO '{place}' ({OPTIONS})").fetchall()
        return [
            _row_file(columns, (place, count, size), stats, keys) for place, count, size, _, stats, keys, _ in found
        ]


def _row_file(
    columns: Columns, written: tuple[str, int, int], stats: Mapping[str, Mapping[str, str]], keys: Mapping[str, str]
) -> RowFile:
    """Return a file by what DuckDB, which has written it, tells of it: its place, rows and bytes, and its columns."""
    place, count, size = written
    known = {name.strip('"'): found for name, found in stats.items()}
    told = {
        "numRecords": count,
        "minValues": _numbers(columns, known, "min"),
        "maxValues": _numbers(columns, known, "max"),
        "nullCount": {name: int(found["null_count"]) for name, found in known.items() if "null_count" in found},
    }
    return RowFile(Path(place), keys[DAY], size, json.dumps(told))


def _numbers(columns: Columns, stats: Mapping[str, Mapping[str, str]], which: str) -> dict[str, int]:
    """Return the least or the greatest values of columns with whole numbers."""
    return {
        name: int(found[which])
        for name, found in stats.items()
        if columns[name] in NUMBERS and found.get(f"{which}_is_exact") == "true"
    }
