"""Delta tables that have taken in a trail, and what stands in them."""

from pathlib import Path
from typing import Any, Final

import duckdb

from kavka_audit.delta.chain_rows import known_chains
from kavka_audit.delta.chain_states import ChainState
from kavka_audit.delta.daily_tables import entries_of
from kavka_audit.delta.ingest import ingest
from kavka_audit.delta.tables import Table, Tables
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Trail
from tests.unit.analytics.trail import CLUSTER, NOW_MS

NAMES: Final = ("dead_letters", "events", "chains")
Rows = list[tuple[Any, ...]]


def lake_in(directory: Path) -> Lake:
    return Lake(directory, table_format="delta")


def taken_in(directory: Path, trail: Trail) -> tuple[Lake, Ingested]:
    """A lake whose tables have taken in the trail."""
    lake = lake_in(directory)
    with lake.held(CLUSTER):
        so_far = [Ingested(), *ingest(lake, trail, NOW_MS)][-1]
    return lake, so_far


def rows_in(table: Table) -> Rows:
    """All rows of a table with all columns, its day among them, in an order of their own."""
    files = table.files()
    if not files:
        return []
    days = '"day"' if "day" in table.columns else "NULL"
    with duckdb.connect() as connection:
        found = (
            connection.read_parquet(files, hive_partitioning="day" in table.columns).project(f"{days}, *").fetchall()
        )
    return sorted(found, key=repr)


def contents(lake: Lake) -> dict[str, Rows]:
    """All rows of all tables."""
    tables = Tables(lake)
    return {name: rows_in(getattr(tables, name)) for name in NAMES}


def entries(lake: Lake) -> Rows:
    """The rows of the trail, without their topics."""
    with duckdb.connect() as connection:
        rows = entries_of(connection, Tables(lake)).project("* EXCLUDE (topic_id)")
        return sorted(rows.fetchall(), key=repr)


def chains(lake: Lake) -> dict[str, ChainState]:
    """The chains, by source."""
    return {state.source: state for state in known_chains(Tables(lake).chains).values()}
