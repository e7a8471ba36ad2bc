"""The three Delta tables of a lake, by deltalake: opened or made, read, and committed to.

`number` is that of the last batch that a table has, and `reached` the offset up to which it has a partition: both are
transaction identifiers of Delta. A commit whose identifiers another commit has taken meanwhile is refused by Delta.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Protocol
from urllib.parse import unquote

import duckdb
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import PrimitiveType

from kavka_audit.delta.columns import CHAINS, DAY, DEAD_LETTERS, EVENTS, Columns
from kavka_audit.delta.directory_names import check_directory
from kavka_audit.lake.directory import Lake, LakeError, TablePlace

NUMBER: Final = "kavka-audit"
"""The identifier whose version is the number of a batch."""
READER_VERSION_MAX: Final = 1
"""The protocol of Delta that these tables have: a reader needs no more than their files of Parquet."""
COMMITS_LOOKED_AT: Final = 50
"""Commits among which one is looked for that was made a moment ago."""
CHARACTERS_MAX: Final = 300
OF_STORE: Final = ("<Code>", "Error performing", "S3 error")
"""What is in an error of deltalake's that the store has answered, or that its client had."""
SSL_CERT_FILE: Final = "SSL_CERT_FILE"
ZSTD: Final = WriterProperties(compression="ZSTD")


class Rows(Protocol):
    """Rows that Arrow's interface for C gives, as a relation of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Table:
    """A table as it was when it was opened, or after the last commit of this run."""

    def __init__(self, lake: Lake, name: str, columns: Columns, partitions: Sequence[str] = ()) -> None:
        self.name, self.columns, self._lake = name, columns, lake
        place, self._depth = table_place(lake), len(partitions) + 1
        self._place = f"{place.address}/{name}"
        self._check_lease()
        with told(lake, name), _trusting(place.certificates):
            schema = Schema([Field(column, PrimitiveType(kind)) for column, kind in columns.items()])
            self.delta = DeltaTable.create(
                self._place,
                schema,
                mode="ignore",
                partition_by=[*partitions] or None,
                storage_options={**place.options} or None,
            )
        self._check()

    def _check(self) -> None:
        """Raise LakeError where the table is not one that a run has made."""
        with told(self._lake, self.name):
            found = {field.name: field.type for field in self.delta.schema().fields}
            protocol = self.delta.protocol()
        wanted = {name: PrimitiveType(kind) for name, kind in self.columns.items()}
        if any(found.get(name) != kind for name, kind in wanted.items()):
            raise LakeError(f"{self._place} is a table with other columns than a run makes; choose another place")
        if protocol.min_reader_version > READER_VERSION_MAX:
            words = f"needs version {protocol.min_reader_version} of Delta's protocol to be read"
            raise LakeError(f"{self._place} {words}, and {READER_VERSION_MAX} is known; take its new features off")

    @property
    def number(self) -> int:
        """Return the number of the last batch; 0 before the first one."""
        return self.delta.transaction_version(NUMBER) or 0

    def reached(self, topic_id: str, partition: int) -> int:
        """Return the offset after the last that the table has of a partition."""
        return self.delta.transaction_version(identifier(topic_id, partition)) or 0

    def ended(self, query_id: str) -> int:
        """Return the number of the last micro-batch of a query that the table has; -1 before the first one."""
        found = self.delta.transaction_version(query_identifier(query_id))
        return -1 if found is None else found

    def files(self, filters: Sequence[tuple[str, str, Any]] | None = None) -> list[str]:
        """Return the files of Parquet that the table consists of, of some partitions or all, as they are on this
        machine: those of a table in a store are fetched. A row's day is in the name of the file's directory alone.
        """
        keeper, names = self._lake.keeper, self.names()
        if keeper is not None:
            keeper.bring_tables(self._lake.directory, self.name, names)
        found = names if filters is None else self.names(filters)
        return [str(self._lake.directory / name) for name in found]

    def names(self, filters: Sequence[tuple[str, str, Any]] | None = None) -> list[str]:
        """Return the same files by their names in the directory; none is fetched."""
        with told(self._lake, self.name):
            found = self.delta.file_uris(file_pruning_predicate=None if filters is None else [*filters])
        return sorted("/".join([self.name, *unquote(uri).split("/")[-self._depth :]]) for uri in found)

    def is_kept(self, names: Sequence[str]) -> bool:
        """Whether any of these files of the table is there, by the names that its log has."""
        if self._lake.keeper is None:
            return any((self._lake.directory / self.name / unquote(name)).exists() for name in names)
        return not self._lake.keeper.kept_names(self.name).isdisjoint(f"{self.name}/{unquote(name)}" for name in names)

    def delete_before(self, day: str) -> None:
        """Delete the days before one. Raises LakeError."""
        self._check_lease()
        with told(self._lake, self.name):
            self.delta.delete(f"{DAY} < '{day}'")

    def compact(self, day: str) -> None:
        """Make one file of those of a day. Raises LakeError."""
        self._check_lease()
        with told(self._lake, self.name):
            self.delta.optimize.compact(partition_filters=[(DAY, "=", day)])

    def vacuum(self) -> None:
        """Delete the files that no version of the last week needs. Raises LakeError."""
        with told(self._lake, self.name):
            # What was vacuumed before is listed again, and would be committed again.
            is_due = self.is_kept(self.delta.vacuum(dry_run=True))
        if is_due:
            self._check_lease()
            with told(self._lake, self.name):
                self.delta.vacuum(dry_run=False)

    def _check_lease(self) -> None:
        """Raise LakeError where this run may not change what is kept."""
        if self._lake.keeper is not None:
            self._lake.keeper.check()

    def append(self, rows: Rows, identifiers: Mapping[str, int]) -> None:
        """Add rows. Raises LakeError, also where another run was faster."""
        self._write(rows, "append", identifiers)

    def replace(self, rows: Rows, identifiers: Mapping[str, int]) -> None:
        """Put rows in the place of those that are there. Raises LakeError, also where another run was faster."""
        self._write(rows, "overwrite", identifiers)

    def replace_days(self, rows: Rows, days: Collection[str]) -> None:
        """Put rows in the place of those of some days. Raises LakeError."""
        listed = ", ".join(f"'{day}'" for day in sorted(days))
        self._write(rows, "overwrite", {}, f"{DAY} IN ({listed})")

    def check_committed(self, token: str) -> None:
        """Look at what another writer has committed; raise LakeError where none of its commits has these words."""
        with told(self._lake, self.name):
            self.delta.update_incremental()
            latest = self.delta.history(COMMITS_LOOKED_AT)
        if not any(commit.get("userMetadata") == token for commit in latest):
            raise LakeError(_overtaken(self._lake, self.name))

    def _write(self, rows: Rows, mode: Any, identifiers: Mapping[str, int], predicate: str | None = None) -> None:
        properties = CommitProperties(app_transactions=[Transaction(*pair) for pair in identifiers.items()])
        self._check_lease()
        with told(self._lake, self.name):
            write_deltalake(
                self.delta,
                rows,
                mode=mode,
                predicate=predicate,
                commit_properties=properties,
                writer_properties=ZSTD,
            )


def table_place(lake: Lake) -> TablePlace:
    """Return where the tables of a lake stand. Raises LakeError."""
    return TablePlace(str(lake.directory.absolute())) if lake.keeper is None else lake.keeper.table_place()


@contextmanager
def _trusting(certificates: str) -> Iterator[None]:
    """Have a client that is made meanwhile trust these certificates: deltalake takes them from a file that the
    environment names.
    """
    if not certificates:
        yield
        return
    before = os.environ.get(SSL_CERT_FILE)
    with NamedTemporaryFile("w", suffix=".pem", encoding="utf-8") as file:
        file.write(certificates)
        file.flush()
        os.environ[SSL_CERT_FILE] = file.name
        try:
            yield
        finally:
            os.environ.pop(SSL_CERT_FILE)
            os.environ.update({SSL_CERT_FILE: before} if before is not None else {})


class Tables:
    """The tables of a lake."""

    def __init__(self, lake: Lake) -> None:
        check_directory(lake.directory)
        self.dead_letters = Table(lake, "dead_letters", DEAD_LETTERS, [DAY])
        self.events = Table(lake, "events", EVENTS, [DAY])
        self.chains = Table(lake, "chains", CHAINS)


def identifier(topic_id: str, partition: int) -> str:
    """Return the identifier whose version is the offset that was reached in a partition."""
    return f"{NUMBER}/{topic_id}/{partition}"


def query_identifier(query_id: str) -> str:
    """Return the identifier whose version is the last micro-batch of a query of Spark."""
    return f"{NUMBER}/query/{query_id}"


def is_there(directory: Path) -> bool:
    """Whether a lake has tables."""
    return (directory / "chains" / "_delta_log").is_dir()


def relation(connection: duckdb.DuckDBPyConnection, files: list[str]) -> duckdb.DuckDBPyRelation:
    """Return the rows of a table's files, without their day."""
    return connection.read_parquet(files, union_by_name=True, hive_partitioning=False)


@contextmanager
def told(lake: Lake, name: str) -> Iterator[None]:
    """Raise LakeError for an error of Delta."""
    try:
        yield
    except CommitFailedError as problem:
        raise LakeError(_overtaken(lake, name)) from problem
    except (DeltaError, OSError) as problem:
        raise LakeError(f"{lake.name}/{name}: {_words(lake, problem)}") from problem


def _words(lake: Lake, problem: Exception) -> str:
    """Return what is wrong. Of a table in a store, nothing that deltalake says: it may hold what was signed."""
    text = str(problem)
    if lake.keeper is None:
        return " ".join(text.split())[:CHARACTERS_MAX]
    if any(mark in text for mark in OF_STORE):
        return lake.keeper.words(text)
    if isinstance(problem, OSError) and problem.strerror:  # of this machine, as where there is no place for a file
        return problem.strerror
    return (
        f"deltalake cannot read or write the table ({type(problem).__name__}): its log is damaged, or it is none that a"
        " run has made; put a copy of it back, or choose another prefix"
    )


def _overtaken(lake: Lake, name: str) -> str:
    return (
        f"another run has written to {lake.name}/{name} meanwhile, and this one has ended; what it has committed counts"
        " once, so run it again when the other is over"
    )
