"""The three Delta tables of a lake, by deltalake: opened or made, read, and committed to.

`number` is that of the last batch that a table has, and `reached` the offset up to which it has a partition: both are
transaction identifiers of Delta. A commit whose identifiers another commit has taken meanwhile is refused by Delta.
"""

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import time
from typing import Any, Final, Protocol
from urllib.parse import unquote

import duckdb
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, RemoveAction

from kavka_audit.delta.batch_files import RowFile
from kavka_audit.delta.columns import ADDED, CHAINS, DAY, DEAD_LETTERS, EVENTS, Columns
from kavka_audit.delta.directory_names import check_directory
from kavka_audit.lake.directory import Lake, LakeError, TablePlace, sync_path

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
        if any(found.get(name) != kind for name, kind in wanted.items() if name in found or name not in ADDED):
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
        self._sync()

    def compact(self, day: str) -> None:
        """Make one file of those of a day. Raises LakeError."""
        self._check_lease()
        with told(self._lake, self.name):
            self.delta.optimize.compact(partition_filters=[(DAY, "=", day)])
        self._sync()

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

    def add(self, files: Sequence[RowFile], identifiers: Mapping[str, int]) -> None:
        """Add files of rows, which take their places. Raises LakeError, also where another run was faster."""
        actions, now_ms = list[AddAction | RemoveAction](), int(time() * 1000)
        for file in files:
            name = f"{DAY}={file.day}/{file.place.name}"
            place = self._lake.directory / self.name / name
            place.parent.mkdir(parents=True, exist_ok=True)
            self._lake.settle(file.place, place)
            actions.append(AddAction(name, file.size_bytes, {DAY: file.day}, now_ms, True, file.stats))
        self._write(partial(self._commit_files, actions), identifiers)

    def _commit_files(self, actions: list[AddAction | RemoveAction], commit_properties: CommitProperties) -> None:
        schema = self.delta.schema()
        self.delta.create_write_transaction(actions, "append", schema, [DAY], commit_properties=commit_properties)
        # Unlike a writer of rows it leaves the table as it was opened. A commit of another run may be seen by that too:
        # it is behind one of that run to `chains`, which has this run's next commit there refused.
        self.delta.update_incremental()

    def append(self, rows: Rows, identifiers: Mapping[str, int]) -> None:
        """Add rows. Raises LakeError, also where another run was faster."""
        self._write(partial(write_deltalake, self.delta, rows, mode="append", writer_properties=ZSTD), identifiers)

    def replace(self, rows: Rows, identifiers: Mapping[str, int]) -> None:
        """Put rows in the place of those that are there. Raises LakeError, also where another run was faster."""
        has_all = self.columns.keys() <= {field.name for field in self.delta.schema().fields}
        how = {"mode": "overwrite", "schema_mode": None if has_all else "merge", "writer_properties": ZSTD}
        self._write(partial(write_deltalake, self.delta, rows, **how), identifiers)

    def replace_days(self, rows: Rows, days: Collection[str]) -> None:
        """Put rows in the place of those of some days. Raises LakeError."""
        listed = ", ".join(f"'{day}'" for day in sorted(days))
        where = {"mode": "overwrite", "predicate": f"{DAY} IN ({listed})"}
        self._write(partial(write_deltalake, self.delta, rows, writer_properties=ZSTD, **where), {})

    def check_committed(self, token: str) -> None:
        """Look at what another writer has committed; raise LakeError where none of its commits has these words."""
        with told(self._lake, self.name):
            self.delta.update_incremental()
            latest = self.delta.history(COMMITS_LOOKED_AT)
        if not any(commit.get("userMetadata") == token for commit in latest):
            raise LakeError(_overtaken(self._lake, self.name))
        self._sync()

    def _write(self, commit: Callable[..., None], identifiers: Mapping[str, int]) -> None:
        properties = CommitProperties(app_transactions=[Transaction(*pair) for pair in identifiers.items()])
        self._check_lease()
        with told(self._lake, self.name):
            commit(commit_properties=properties)
        self._sync()

    def _sync(self) -> None:
        """Have the last commit to a table of a directory on the disk, with the files that it adds: deltalake leaves
        that to the kernel. So no table is ahead of what another one was told before it.
        """
        if self._lake.keeper is not None:
            return
        table = self._lake.directory / self.name
        with told(self._lake, self.name):
            log = table / "_delta_log" / f"{self.delta.version():020}.json"
            actions = [json.loads(line) for line in log.read_bytes().splitlines()]
            files = [table / unquote(action["add"]["path"]) for action in actions if "add" in action]
            for path in (*files, log, *{file.parent for file in files}, log.parent, table):
                sync_path(path)


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
