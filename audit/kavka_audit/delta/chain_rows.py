"""The rows of the table `chains`, by DuckDB."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

import duckdb

from kavka_audit.delta.chain_states import ChainState, Place
from kavka_audit.delta.columns import CHAINS, TIME_MAX_MS
from kavka_audit.delta.tables import Table, relation
from kavka_audit.lake.database import connected

SQL_TYPES: Final = {"integer": "INTEGER", "long": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}
TIME, TIME_MS = "last_time", "last_ms"
FIELDS: Final = {name: SQL_TYPES.get(kind, "BIGINT") for name, kind in CHAINS.items() if name != TIME} | {
    TIME_MS: "BIGINT"
}


def known_chains(table: Table) -> dict[Place, ChainState]:
    """Return the chains of a table."""
    files = table.files()
    if not files:
        return {}
    with connected() as connection:
        times = f"epoch_ms({TIME}) AS {TIME_MS}"
        rows = relation(connection, files).project(", ".join((*(name for name in FIELDS if name != TIME_MS), times)))
        states = [ChainState(**dict(zip(rows.columns, row, strict=True))) for row in rows.fetchall()]
    return {state.place: state for state in states}


def replace_chains(table: Table, chains: Mapping[Place, ChainState], identifiers: Mapping[str, int]) -> None:
    """Commit chains in the place of those that the table has. Raises LakeError."""
    with connected() as connection:
        table.replace(_rows(connection, chains), identifiers)


def _rows(connection: duckdb.DuckDBPyConnection, chains: Mapping[Place, ChainState]) -> duckdb.DuckDBPyRelation:
    lines = json.dumps([asdict(chains[place]) for place in sorted(chains)])
    time = f"make_timestamptz(least({TIME_MS}, {TIME_MAX_MS}) * 1000) AS {TIME}"
    found = connection.sql("SELECT unnest(from_json(?, ?), recursive := true)", params=[lines, json.dumps([FIELDS])])
    return found.project(", ".join(time if name == TIME else f'"{name}"' for name in CHAINS))
