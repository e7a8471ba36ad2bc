"""Reads dead letters again: what was no event to the program that took it in may be one to a later program.

A dead letter that is an entry now is appended to `events`, and leaves `dead_letters` by a commit behind that. A replay
that dies between the two leaves it in both tables; the next one finds it in `events` by its offset, and only deletes
it. No commit of a replay holds an identifier: it is no batch, and reading the topic goes on where it was.

Chains are judged when they are read from the topic. A replay changes no verdict.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from kavka_audit.delta.chain_rows import known_chains, offsets_behind
from kavka_audit.delta.columns import DAY, IN_EVENTS, checked, to_delta
from kavka_audit.delta.tables import Table, Tables, relation
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.directory import PART, Lake, LakeError
from kavka_audit.lake.rows import Headers, Row, headers_in, row_of
from kavka_audit.lake.writing import line_of
from kavka_audit.questions.query_runner import bounded

LETTERS_AT_ONCE: Final = 20
"""Dead letters that are in memory at once, each with 3 MiB at most of headers and value."""
REPLAYED: Final = "replayed"
"""The database's table of the places whose dead letters are events now."""
PLACE: Final = ("topic_id", "partition", "offset")
LETTERS: Final = """
SELECT topic_id, "partition", "offset", record_headers, record_value
FROM read_parquet(?, hive_partitioning = false) ORDER BY topic_id, "partition", "offset"
"""
HALF_DONE: Final = "has a batch that is half done; end it by `kavka audit run`, and replay then"


class Letter(NamedTuple):
    """A dead letter, as a record of the audit topic."""

    partition: int
    offset: int
    headers: Headers
    value: bytes | None


@dataclass(slots=True)
class Replayed:
    """What was read again: how many are events now, and how many are still none, by the reason."""

    events: int = 0
    problems: Counter[str] = field(default_factory=Counter)


def replay(lake: Lake, now_ms: int, *, is_dry_run: bool = False) -> Iterator[Replayed]:
    """Read all dead letters of a lake that is held again, and move those that are entries now; gives what was found so
    far, day by day. A dry run moves none. Raises LakeError.
    """
    tables, so_far = Tables(lake), Replayed()
    if _is_half_done(tables):
        raise LakeError(f"{lake.name} {HALF_DONE}")
    days = {Path(name).parent.name.partition("=")[2] for name in tables.dead_letters.names()}
    for day in sorted(days):
        with bounded(lake) as connection:
            connection.execute('CREATE TABLE replayed (topic_id VARCHAR, "partition" INTEGER, "offset" BIGINT)')
            files = tables.dead_letters.files([(DAY, "=", day)])
            for part, topic_id in _parts(lake, connection, files, so_far):
                rows = connection.read_json(str(part), columns=dict(ENTRIES), format="newline_delimited")
                if not is_dry_run:
                    _append(tables.events, connection, rows, topic_id, now_ms)
                part.unlink()
            if connection.table(REPLAYED).limit(1).fetchall():
                _delete(tables.dead_letters, connection, files, day)
        yield so_far


def _is_half_done(tables: Tables) -> bool:
    """Whether a batch is committed to a table and not to `chains`: the run that ends it reads its records again, and
    appends those that a replay would have appended.
    """
    chains = tables.chains
    places = {(topic_id, partition) for topic_id, partition, _ in known_chains(chains)} | {*offsets_behind(tables)}
    return any(
        table.number > chains.number or any(table.reached(*place) > chains.reached(*place) for place in places)
        for table in (tables.dead_letters, tables.events)
    )


def _parts(
    lake: Lake, connection: duckdb.DuckDBPyConnection, files: list[str], so_far: Replayed
) -> Iterator[tuple[Path, str]]:
    """Give files with rows of what is an entry now, as lines, and the topic's id of each."""
    with connection.cursor() as cursor:
        cursor.execute(LETTERS, [files])
        for (topic_id, partition), letters in groupby(_fetched(cursor), lambda found: found[:2]):
            part: Path | None = None
            for _, _, offset, headers, value in letters:
                row = _row(partition, offset, headers, value, so_far)
                if row is not None:
                    part = part or lake.place(topic_id, partition, offset, offset + 1).with_suffix(PART)
                    with part.open("a", encoding="utf-8") as file:
                        file.write(line_of(row) + "\n")
            if part is not None:
                yield part, topic_id


def _fetched(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, int, int, str | None, bytes | None]]:
    while rows := cursor.fetchmany(LETTERS_AT_ONCE):
        yield from rows


def _row(partition: int, offset: int, headers: str | None, value: bytes | None, so_far: Replayed) -> Row | None:
    """Return the row of a dead letter that is an entry now, and count it. One whose headers are not kept is none."""
    if headers is None:
        so_far.problems["its headers are not kept"] += 1
        return None
    row = row_of(Letter(partition, offset, headers_in(headers), value))
    if "problem" in row:
        so_far.problems[str(row["problem"])] += 1
        return None
    so_far.events += 1
    return row


def _append(
    events: Table, connection: duckdb.DuckDBPyConnection, rows: duckdb.DuckDBPyRelation, topic_id: str, now_ms: int
) -> None:
    """Append rows of one partition to `events`, but those that a replay which died has appended, and note them all."""
    rows.project(f'\'{checked(topic_id)}\' AS topic_id, "partition", "offset"').insert_into(REPLAYED)
    wanted = rows.set_alias("found")
    if files := events.files():
        ((partition, first, last),) = rows.aggregate('min("partition"), min("offset"), max("offset")').fetchall()
        place = f"topic_id = '{checked(topic_id)}' AND \"partition\" = {partition}"
        there = relation(connection, files).filter(f'{place} AND "offset" BETWEEN {first} AND {last}')
        wanted = wanted.join(there.set_alias("there"), 'found."offset" = there."offset"', how="anti")
    if wanted.limit(1).fetchall():
        events.append(wanted.project(to_delta(IN_EVENTS, topic_id, now_ms)), {})


def _delete(dead_letters: Table, connection: duckdb.DuckDBPyConnection, files: list[str], day: str) -> None:
    """Delete the dead letters of a day that are in `events` now."""
    replayed = connection.table(REPLAYED).set_alias("there")
    are_one = " AND ".join(f'found."{name}" = there."{name}"' for name in PLACE)
    kept = relation(connection, files).set_alias("found").join(replayed, are_one, how="anti")
    columns = ", ".join(f'"{name}"' for name in dead_letters.columns if name != DAY)
    dead_letters.replace_days(kept.project(f"{columns}, DATE '{day}' AS {DAY}"), [day])
