"""Keeps the daily tables: what the questions ask of, for each day by itself, so that old days are not read again.

A day is made again of all its rows where they have changed, whatever has changed them: a batch, entries that came late,
retention, compaction. So nothing is added to a sum, and nothing can be added twice. `daily_days` says of which files
each day was made. Before a day is made, or taken away, it is said there to be in work, and behind it what it is made
of: a run that dies in between leaves a day that is made again, or taken away.

An entry that stands under two days counts in both: its time was changed, which a chain tells. What clients moved while
they were held back is looked for up to a day from when they were told to be.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import duckdb

from kavka_audit.delta.columns import DAY, IN_DEAD_LETTERS, IN_EVENTS, from_delta
from kavka_audit.delta.daily_columns import (
    CHAIN_COUNTS,
    DAILY,
    DAYS,
    DENIALS,
    RANGES,
    SEQUENCE_RANGES,
    THROTTLED,
)
from kavka_audit.delta.tables import Table, Tables, relation
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.directory import Lake
from kavka_audit.questions.query_runner import EVENTS, Aggregates, aggregations, bounded

IN_WORK: Final = ""
"""What stands in the place of a digest while a day is made or taken away; no files have it."""
RULES: Final = "2"
"""The rules by which rows of a day are made. Where they change, all days are made again: 1 counted a loss that was
written twice twice, and took an event for a repeated one where another topic repeats an event at the same offset.
"""
DUPLICATES: Final = "duplicate_rows"
IS_DELAY: Final = "outcome = 'delayed' AND quota_type IN ('produce', 'fetch')"


class DailyTables:
    """The daily tables of a lake."""

    def __init__(self, lake: Lake) -> None:
        self.tables = {name: Table(lake, name, found.delta_columns, [DAY]) for name, found in DAILY.items()}
        self.days = Table(lake, "daily_days", DAYS)

    def digests(self) -> dict[str, str]:
        """Return what each day was made of."""
        files = self.days.files()
        if not files:
            return {}
        with duckdb.connect() as connection:
            return dict(relation(connection, files).project(f"CAST({DAY} AS VARCHAR), files").fetchall())

    def keep_digests(self, digests: Mapping[str, str]) -> None:
        """Say what each day is made of. Raises LakeError."""
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE days ({DAY} DATE, files VARCHAR)")
            if digests:
                connection.executemany("INSERT INTO days VALUES (?, ?)", [*digests.items()])
            self.days.replace(connection.table("days").order(DAY), {})

    def aggregates(self) -> Aggregates:
        """Return what gives the aggregates of all days."""
        files = {name: table.files() for name, table in self.tables.items()}

        def made(connection: duckdb.DuckDBPyConnection) -> dict[str, duckdb.DuckDBPyRelation]:
            found = {}
            for name, daily in DAILY.items():
                rows = _rows(connection, name, files[name])
                rows.create_view(name, replace=True)
                if name == RANGES:
                    found[daily.aggregate] = connection.sql(CHAIN_COUNTS)
                elif name != DENIALS:
                    found[daily.aggregate] = rows.aggregate(daily.merged, daily.groups)
            return found

        return made


def refresh(lake: Lake) -> DailyTables:
    """Make those days again whose rows have changed, and return the tables. Raises LakeError."""
    daily, by_day = DailyTables(lake), files_of(Tables(lake))
    wanted, known = {day: files.digest() for day, files in by_day.items()}, daily.digests()
    changed = {day for day in wanted.keys() | known.keys() if wanted.get(day) != known.get(day)}
    if changed:
        in_work = (changed | beside(changed)) & (known.keys() | wanted.keys())
        daily.keep_digests(known | dict.fromkeys(in_work, IN_WORK))
        with bounded(lake) as connection:
            has_delays = _make(connection, daily, by_day, changed)
            _make_throttled(connection, daily, by_day, changed | beside(changed) if has_delays else changed)
        daily.keep_digests(wanted)
    return daily


@dataclass(frozen=True, slots=True)
class DayFiles:
    """The files of a day, of events and of dead letters."""

    events: list[str] = field(default_factory=list)
    dead_letters: list[str] = field(default_factory=list)

    def digest(self, rules: str = RULES) -> str:
        """Return a digest of their names, of which no two files have one, and of the rules."""
        names = sorted("/".join(Path(file).parts[-3:]) for file in (*self.events, *self.dead_letters))
        return hashlib.sha256("\n".join([rules, *names]).encode()).hexdigest()[:32]


def files_of(tables: Tables) -> dict[str, DayFiles]:
    """Return the files of each day."""
    found = dict[str, DayFiles]()
    for table in (tables.events, tables.dead_letters):
        for file in table.files():
            day = Path(file).parent.name.partition("=")[2]
            getattr(found.setdefault(day, DayFiles()), table.name).append(file)
    return found


def beside(days: Iterable[str]) -> set[str]:
    """Return the days before and after each."""
    return {str(date.fromisoformat(day) + timedelta(days=step)) for day in days for step in (-1, 1)}


def _make(
    connection: duckdb.DuckDBPyConnection, daily: DailyTables, by_day: Mapping[str, DayFiles], days: set[str]
) -> bool:
    """Make all tables of some days but that of throttled use; whether clients are held back in them, or were as they
    stood there before.
    """
    for name, table in daily.tables.items():
        _make_table(connection, f"made_{name}", table)
    for day in sorted(days & by_day.keys()):
        _see_day(connection, by_day[day])
        for name, found in DAILY.items():
            if name != THROTTLED:
                _add(connection, name, SEQUENCE_RANGES if name == RANGES else aggregations()[found.aggregate], day)
    before = _rows(connection, DENIALS, daily.tables[DENIALS].files([(DAY, "in", sorted(days))]))
    delays = [rows.filter(IS_DELAY).limit(1).fetchall() for rows in (before, connection.table(f"made_{DENIALS}"))]
    for name, table in daily.tables.items():
        if name != THROTTLED:
            table.replace_days(connection.table(f"made_{name}"), days)
    return any(delays)


def _make_throttled(
    connection: duckdb.DuckDBPyConnection, daily: DailyTables, by_day: Mapping[str, DayFiles], days: set[str]
) -> None:
    """Make the table of throttled use of some days, by the delays of those and of the days beside them."""
    table = daily.tables[THROTTLED]
    files = daily.tables[DENIALS].files([(DAY, "in", sorted(days | beside(days)))])
    delays = _rows(connection, DENIALS, files, f"{DAY}, ").filter(IS_DELAY)
    delays.create("delays")
    with_delays = {str(day) for (day,) in connection.table("delays").project(DAY).distinct().fetchall()}
    for day in sorted(days & by_day.keys() & (with_delays | beside(with_delays))):
        _see_day(connection, by_day[day])
        listed = ", ".join(f"DATE '{other}'" for other in sorted({day} | beside([day])))
        connection.table("delays").filter(f"{DAY} IN ({listed})").create_view(DENIALS, replace=True)
        _add(connection, THROTTLED, aggregations()[DAILY[THROTTLED].aggregate], day)
    table.replace_days(connection.table(f"made_{THROTTLED}"), days)


def _make_table(connection: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    kinds = {"long": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}
    columns = (f'"{column}" {kinds.get(kind, kind)}' for column, kind in table.columns.items())
    connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")


def _see_day(connection: duckdb.DuckDBPyConnection, files: DayFiles) -> None:
    """Make the entries of a day, and its events, to be seen."""
    entries_in(connection, files).create_view("entries", replace=True)
    connection.execute(f"CREATE OR REPLACE TABLE {DUPLICATES} AS {aggregations()[DUPLICATES]}")
    connection.execute(f"CREATE OR REPLACE VIEW events AS {EVENTS}")


def _add(connection: duckdb.DuckDBPyConnection, name: str, sql: str, day: str) -> None:
    connection.sql(sql).project(f"{DAILY[name].to_delta}, DATE '{day}'").insert_into(f"made_{name}")


def _rows(connection: duckdb.DuckDBPyConnection, name: str, files: list[str], day: str = "") -> duckdb.DuckDBPyRelation:
    """Return rows of a daily table as those of its aggregate, of each day by itself, and with their day if asked."""
    if not files:
        columns = {**({DAY: "DATE"} if day else {}), **DAILY[name].columns}
        nothing = (f'CAST(NULL AS {kind}) AS "{column}"' for column, kind in columns.items())
        return connection.sql(f"SELECT {', '.join(nothing)} WHERE false")
    found = connection.read_parquet(files, union_by_name=True, hive_partitioning=bool(day))
    return found.project(f"{day}{DAILY[name].from_delta}")


def entries_in(connection: duckdb.DuckDBPyConnection, files: DayFiles) -> duckdb.DuckDBPyRelation:
    """Return the rows of the trail in some files, with their topics and the columns of ENTRIES."""
    columns = {**ENTRIES, "topic_id": "VARCHAR"}
    nothing = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in columns.items())
    found = connection.sql(f"SELECT {nothing} WHERE false")  # no client's words
    for listed, names, kind in ((files.events, IN_EVENTS, None), (files.dead_letters, IN_DEAD_LETTERS, "dead")):
        if listed:
            found = found.union(relation(connection, listed).project(f"{from_delta(names, kind)}, topic_id"))
    return found


def entries_of(connection: duckdb.DuckDBPyConnection, tables: Tables) -> duckdb.DuckDBPyRelation:
    """Return all rows of the trail, with their topics and the columns of ENTRIES."""
    return entries_in(connection, DayFiles(tables.events.files(), tables.dead_letters.files()))
