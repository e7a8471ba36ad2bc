"""The rows of the table `chains`, by DuckDB."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

import duckdb

from kavka_audit.delta.chain_states import ChainState, Place
from kavka_audit.delta.columns import CHAINS, TIME_MAX_MS
from kavka_audit.delta.tables import Table, Tables, relation
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake
from kavka_audit.report.chain_summary import Chains
from kavka_broker.core.audit.verification import State

SQL_TYPES: Final = {"integer": "INTEGER", "long": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}
TIMES: Final = {"last_time": "last_ms", "read_time": "read_ms"}
"""Timestamps, and the fields in milliseconds that they are in Python."""
FIELDS: Final = {TIMES.get(name, name): SQL_TYPES.get(kind, "BIGINT") for name, kind in CHAINS.items()}


def known_chains(table: Table) -> dict[Place, ChainState]:
    """Return the chains of a table."""
    files = table.files()
    if not files:
        return {}
    with connected() as connection:
        found = relation(connection, files)
        columns = (
            f"epoch_ms({name}) AS {TIMES[name]}" if name in TIMES else f'"{name}"'
            for name in CHAINS
            if name in found.columns
        )
        rows = found.project(", ".join(columns))
        states = [ChainState(**dict(zip(rows.columns, row, strict=True))) for row in rows.fetchall()]
    return {state.place: state for state in states}


def summary_of(lake: Lake, now_ms: int) -> Chains:
    """Return what a page says of the chains. A time after that of the run counts as that of the run."""
    states = known_chains(Tables(lake).chains).values()
    damaged = [f"{state.source} ({state.fault} at {state.fault_sequence})" for state in states if state.damages]
    last_ms = max((min(state.last_ms, now_ms) for state in states), default=0)
    unnamed = sum(state.is_unnamed for state in states)
    counts = Counter(state.verdict for state in states)
    if lake.wanted_cluster and unnamed:
        counts[State.UNSIGNED.value], counts[State.SOUND.value] = unnamed, counts[State.SOUND.value] - unnamed
    return Chains(dict(counts), sorted(damaged), last_ms, unnamed)


def offsets_behind(tables: Tables) -> dict[tuple[str, int], int]:
    """Return the offset behind the last row of each partition, by the id of its topic."""
    found = dict[tuple[str, int], int]()
    with connected() as connection:
        for table in (tables.events, tables.dead_letters):
            if files := table.files():
                rows = relation(connection, files).aggregate('topic_id, "partition", max("offset")')
                for topic_id, partition, last in rows.fetchall():
                    found[topic_id, partition] = max(found.get((topic_id, partition), 0), last + 1)
    return found


def replace_chains(table: Table, chains: Mapping[Place, ChainState], identifiers: Mapping[str, int]) -> None:
    """Commit chains in the place of those that the table has. Raises LakeError."""
    with connected() as connection:
        table.replace(_rows(connection, chains), identifiers)


def _rows(connection: duckdb.DuckDBPyConnection, chains: Mapping[Place, ChainState]) -> duckdb.DuckDBPyRelation:
    lines = json.dumps([asdict(chains[place]) for place in sorted(chains)])
    found = connection.sql("SELECT unnest(from_json(?, ?), recursive := true)", params=[lines, json.dumps([FIELDS])])
    return found.project(", ".join(_time(name) if name in TIMES else f'"{name}"' for name in CHAINS))


def _time(name: str) -> str:
    return f"make_timestamptz(least({TIMES[name]}, {TIME_MAX_MS}) * 1000) AS {name}"
