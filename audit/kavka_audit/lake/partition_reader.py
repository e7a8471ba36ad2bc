"""Records of one partition on their way into a file of the lake.

Rows are written to files beside it as soon as they are known, so that no more than a batch is in memory: those of usual
events as columns, a file for each form, and all others as lines of JSON. At the end DuckDB makes one file of them.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple, Self

import duckdb

from kavka_audit.lake.batch_parser import Form
from kavka_audit.lake.chain_steps import Links
from kavka_audit.lake.columns import Columns
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import PART
from kavka_audit.lake.rows import Batch, Found, Packed, Row
from kavka_audit.lake.writing import line_of

BUFFER_BYTES: Final = 1 << 18
"""Lines that are not in a file yet, of each form."""


class Intake(NamedTuple):
    """What the records of a topic become."""

    name: str
    columns: Columns
    forms: Sequence[Form]  # of records that become rows by whole batches
    usual: Callable[[Packed], str | None]  # the row of nearly any record, as a line of JSON
    rows: Callable[[Found], Sequence[Row]]  # the rows of any other
    missed: Callable[[int, int, int], Row]


class Lines:
    """A file with lines, which is deleted at the end."""

    def __init__(self, file: Path) -> None:
        self.file, self.is_empty = file, True
        self._opened = file.open("wb", buffering=BUFFER_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.file.unlink(missing_ok=True)

    def add(self, lines: Sequence[bytes]) -> None:
        """Write lines."""
        self._opened.writelines(lines)
        self.is_empty = self.is_empty and not lines

    def close(self) -> None:
        """Have all lines in the file."""
        self._opened.close()


class Taking:
    """One file on its way, from `first` on. `following` is the offset behind the last record that was looked at, and
    `begin` tells the first offset that is there. Without a row for a record that was deleted, none is left out. `links`
    follows the chains of the entries.
    """

    def __init__(
        self,
        intake: Intake,
        partition: int,
        first: int,
        begin: Callable[[int], int],
        part: Path,
        links: Links | None = None,
    ) -> None:
        self._intake, self._partition, self._begin, self._part = intake, partition, begin, part
        self._links = links
        self.following, self.rows = first, 0
        self.records = self.dead = self.missed = 0
        self._files = ExitStack()

    def __enter__(self) -> Self:
        self._others = self._file("others")
        self._forms = [(form, self._file(f"{place}")) for place, form in enumerate(self._intake.forms)]
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def _file(self, name: str) -> Lines:
        return self._files.enter_context(Lines(self._part.with_name(f"{self._part.name}.{name}.lines{PART}")))

    def miss(self, until: int) -> None:
        """Go on at an offset: note that what was to follow before it, if anything, was deleted."""
        gone, self.following = until - self.following, max(self.following, until)
        if gone > 0:
            self.missed += gone
            self._add([self._intake.missed(self._partition, until - gone, until)])

    def miss_deleted(self, until: int) -> None:
        """Note what was deleted before an offset, as far as that is known."""
        self.miss(min(self._begin(self._partition), until))

    def is_before_hole(self, until: int) -> bool:
        """Whether records that follow what was taken, before an offset, are known to be deleted."""
        return self.records > 0 and min(self._begin(self._partition), until) > self.following

    def add(self, batch: Batch, until: int) -> None:
        """Take in the records of a batch that follow, up to an offset."""
        packed, at, index = batch.packed(), 0, 0
        is_whole = self.following <= batch.base_offset and batch.base_offset + batch.count <= until
        if is_whole:
            self.miss_deleted(batch.base_offset)
        while index < batch.count:
            found = self._run(batch, packed, (at, index)) if is_whole else (at, index)
            if found[1] == index:
                record, at = batch.record_at(packed, at)
                self._take(record, until)
                found = at, index + 1
            at, index = found
        if at != len(packed):
            batch.records()  # raises what is wrong with it

    def _run(self, batch: Batch, packed: bytes, begun: tuple[int, int]) -> tuple[int, int]:
        """Take in what has one of the forms; returns the place of what has none of them, and its number."""
        found = begun
        for form, file in self._forms:
            lines: list[bytes] = []
            found = form.run(packed, found, batch.count, batch.base_offset, lines, self._links)
            file.add(lines)
        if taken := found[1] - begun[1]:
            self.rows, self.records = self.rows + taken, self.records + taken
            self.following = batch.base_offset + found[1]
        return found

    def _take(self, record: Packed, until: int) -> None:
        if not self.following <= record.offset < until:
            return
        if record.offset > self.following:
            self.miss_deleted(record.offset)
        self.following, self.records = record.offset + 1, self.records + 1
        if self._links is not None:
            self._links.add(record)
        if (line := self._intake.usual(record)) is not None:
            self._others.add([line.encode() + b"\n"])
            self.rows += 1
            return
        rows = self._intake.rows(record)
        self.dead += any("problem" in row for row in rows)
        self._add(rows)

    def _add(self, rows: Sequence[Row]) -> None:
        self._others.add([line_of(row).encode() + b"\n" for row in rows])
        self.rows += len(rows)

    def write(self) -> None:
        """Write the rows into the file."""
        with connected(threads=1) as connection:
            rows, usual = self.relations(connection)
            for found in usual:
                rows = rows.union(found)
            rows.write_parquet(str(self._part), compression="zstd")

    def relations(
        self, connection: duckdb.DuckDBPyConnection
    ) -> tuple[duckdb.DuckDBPyRelation, list[duckdb.DuckDBPyRelation]]:
        """Return the rows that were made one by one, and those of whole batches, of which none is dead. No record is
        added any more.
        """
        for file in (self._others, *(file for _, file in self._forms)):
            file.close()
        usual = [form.rows(connection, self._partition, file.file) for form, file in self._forms if not file.is_empty]
        return self._other_rows(connection), usual

    def _other_rows(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        columns = dict(self._intake.columns)
        return connection.read_json(str(self._others.file), columns=columns, format="newline_delimited")
