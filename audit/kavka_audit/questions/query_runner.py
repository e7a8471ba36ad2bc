"""The questions, asked of a lake by DuckDB.

Most questions ask of sums, and several of the same. So the rows are gone through once for each of the tables in
AGGREGATES, and the questions read those: how long they take grows with what is told apart, and not with the events.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import duckdb

from kavka_audit.lake.columns import COUNTS, CUTS, ENTRIES, SNAPSHOT, Columns
from kavka_audit.lake.directory import PART, Lake, by_topic

MEMORY: Final = "1GB"
"""What DuckDB may keep in memory; beyond it, it writes to the directory `.spill` of the lake."""
AGGREGATES: Final = (
    "duplicate_rows",
    "denials_delays_changes",
    "uses",
    "traffic_buckets",
    "chain_counts",
    "entry_counts",
    "throttled_uses",
)
"""What is aggregated from the rows. The first asks of `entries` alone, the second of `events`, any other of both of
these and of the first two.
"""
EVENTS: Final = """
SELECT entries.* FROM entries
LEFT JOIN duplicate_rows AS duplicates
    ON duplicates.topic_id = entries.topic_id AND duplicates.partition = entries.partition
    AND duplicates.at_offset = entries.offset
WHERE entries.kind = 'event' AND duplicates.at_offset IS NULL
"""
"""The table `events`: each event once, however often its entry was written. A topic that was deleted and created again
has other records at the same offsets, so that a row is known by the topic too.
"""
Aggregates = Callable[[duckdb.DuckDBPyConnection], Mapping[str, duckdb.DuckDBPyRelation]]
"""Gives the aggregates that questions ask of, where they are not made of the rows in the lake's own files. One that has
its name as a view already need not be given.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the SQL that answers it. `name` is that of its table."""

    name: str
    title: str
    explanation: str
    sql: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What questions are asked with, whole numbers, each a column of `settings`. `bill_cents` is divided among
    those who use the cluster.
    """

    now_ms: int
    unused_days: int = 30
    new_days: int = 7
    bill_cents: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """An answer: its columns and first rows, in order, and how many rows there are."""

    question: Question
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    count: int

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows by the names of columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@cache
def questions() -> tuple[Question, ...]:
    """Return the questions, by name."""
    files = sorted(Path(__file__).parent.glob("*.sql"))
    return tuple(_question(file.stem, file.read_text(encoding="utf-8")) for file in files)


@cache
def aggregations() -> dict[str, str]:
    """Return the SQL of each table that is aggregated, by name and in order."""
    directory = Path(__file__).parent / "aggregates"
    return {name: (directory / f"{name}.sql").read_text(encoding="utf-8") for name in AGGREGATES}


def _question(name: str, text: str) -> Question:
    lines = text.splitlines()
    head = [line.removeprefix("-- ") for line in lines[: next(i for i, line in enumerate(lines) if line[:2] != "--")]]
    return Question(name, head[0], " ".join(head[1:]), text)


def ask(
    lake: Lake, settings: Settings, rows_max: int, aggregates: Aggregates | None = None, memory: str = MEMORY
) -> dict[str, Table]:
    """Answer each question into a file of `tables`; returns the first `rows_max` rows of each, by name."""
    found = {}
    with bounded(lake, memory) as connection:
        # Of the trail's rows no question asks itself; some other engine may have read them where they are not here.
        _see(connection, lake, settings, lake.fetched(lake.files()) if aggregates is None else [])
        if aggregates is None:
            _aggregate(connection)
        else:
            for name, rows in aggregates(connection).items():
                rows.create(name)
        for question in questions():
            found[question.name] = _answer(connection, lake, question, rows_max)
            # A question may ask of the answers to those before it.
            place = str(lake.tables / f"{question.name}.parquet")
            connection.read_parquet(place).create_view(question.name)
    return found


@contextmanager
def bounded(lake: Lake, memory: str = MEMORY) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database of its own that keeps so much in memory, and the rest in the lake's directory meanwhile."""
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = ?", [memory])
        connection.execute("SET temp_directory = ?", [str(lake.directory / ".spill")])
        yield connection


def _see(connection: duckdb.DuckDBPyConnection, lake: Lake, settings: Settings, entries: list[str]) -> None:
    """Make what the questions read. A column that a file does not have reads as NULL."""
    _view_trail(connection, entries)
    _view(connection, "counts", COUNTS, lake.files("counts"))
    _view(connection, "cuts", CUTS, [str(lake.cuts)] if lake.cuts.exists() else [])
    for name, columns in SNAPSHOT.items():
        file = lake.snapshot / f"{name}.parquet"
        _view(connection, name, columns, [str(file)] if file.exists() else [])
    asked = asdict(settings)
    connection.execute(f"CREATE TABLE settings ({', '.join(f'{name} BIGINT' for name in asked)})")
    connection.table("settings").insert(list(asked.values()))


def _aggregate(connection: duckdb.DuckDBPyConnection) -> None:
    """Make what several questions ask of."""
    for name, sql in aggregations().items():
        connection.execute(f"CREATE TABLE {name} AS {sql}")
        if name == AGGREGATES[0]:
            connection.execute(f"CREATE VIEW events AS {EVENTS}")


def _view_trail(connection: duckdb.DuckDBPyConnection, files: list[str]) -> None:
    """Make the rows of all topics of the trail, with the topic of each."""
    found = _rows(connection, {**ENTRIES, "topic_id": "VARCHAR"}, [])
    for topic_id, listed in by_topic(files).items():
        topic = duckdb.ConstantExpression(topic_id).alias("topic_id")
        found = found.union(_rows(connection, ENTRIES, listed).project(duckdb.StarExpression(), topic))
    found.create_view("entries")


def _view(connection: duckdb.DuckDBPyConnection, name: str, columns: Columns, files: list[str]) -> None:
    _rows(connection, columns, files).create_view(name)


def _rows(connection: duckdb.DuckDBPyConnection, columns: Columns, files: list[str]) -> duckdb.DuckDBPyRelation:
    nothing = connection.sql("SELECT 1 AS nothing WHERE false")
    found = connection.read_parquet(files, union_by_name=True) if files else nothing
    shape = [
        f'"{column}"' if column in found.columns else f'CAST(NULL AS {kind}) AS "{column}"'
        for column, kind in columns.items()
    ]
    return found.project(", ".join(shape))


def _answer(connection: duckdb.DuckDBPyConnection, lake: Lake, question: Question, rows_max: int) -> Table:
    place = lake.tables / f"{question.name}.parquet"
    part = place.with_name(place.name + PART)
    found = connection.sql(question.sql)
    # A sum of whole numbers has a type of DuckDB's own, which Parquet has not; it would be written as a float.
    casts = [
        f'CAST("{name}" AS BIGINT) AS "{name}"' if kind == "HUGEINT" else f'"{name}"'
        for name, kind in zip(found.columns, found.types, strict=True)
    ]
    found.project(", ".join(casts)).write_parquet(str(part), compression="zstd")
    lake.settle(part, place)
    return read_answer(connection, question, place, rows_max)


def read_answer(connection: duckdb.DuckDBPyConnection, question: Question, place: Path, rows_max: int) -> Table:
    """Read an answer from its file, with its first rows. Raises duckdb.Error."""
    told = connection.execute("SELECT * FROM read_parquet(?) LIMIT ?", [str(place), rows_max])
    columns, rows = tuple(column[0] for column in told.description or ()), told.fetchall()
    ((count,),) = connection.execute("SELECT count(*) FROM read_parquet(?)", [str(place)]).fetchall()
    return Table(question, columns, rows, count)
