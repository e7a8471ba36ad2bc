"""The trail into Delta tables: each batch a range of one partition, committed to `chains` last."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from kavka_audit.delta.chain_rows import known_chains, replace_chains
from kavka_audit.delta.chain_states import Batch, ChainState, Place, Steps, follow
from kavka_audit.delta.columns import IN_DEAD_LETTERS, IN_EVENTS, to_delta
from kavka_audit.delta.deleted_topics import end_deleted_topics
from kavka_audit.delta.tables import NUMBER, Table, Tables, identifier
from kavka_audit.lake.chain_steps import Links
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import PART, Lake, LakeError
from kavka_audit.lake.ingest import ROWS_MAX, Ingested, Range, Taken, Trail, take

IS_DEAD: Final = "kind = 'dead'"


def ingest(lake: Lake, trail: Trail, now_ms: int) -> Iterator[Ingested]:
    """Take in what is new; gives what was read so far for each batch. At the end all batches are committed."""
    tables, so_far = Tables(lake), Ingested()
    end_deleted_topics(tables, trail.topic_id, now_ms)
    chains = known_chains(tables.chains)
    for span in _spans(tables, trail):
        partition, first, until = span
        while first < until:
            taken, chains = _commit(lake, tables, trail, (partition, first, until), chains, now_ms)
            so_far.records += taken.records
            so_far.dead += taken.dead
            so_far.missed += taken.missed
            yield so_far
            first = taken.until


def _spans(tables: Tables, trail: Trail) -> Iterator[Range]:
    """Give what is to be read, in pieces that become a batch each: first what a run that died has left half done."""
    ranges = [*trail.ranges()]
    yield from _unfinished(tables, trail, ranges)
    for partition, begin, end in ranges:
        first = tables.chains.reached(trail.topic_id, partition)
        while first < end:
            until = min(end, max(first, begin) + ROWS_MAX)
            yield partition, first, until
            first = until


def _unfinished(tables: Tables, trail: Trail, ranges: list[Range]) -> Iterator[Range]:
    before_chains = tables.dead_letters, tables.events
    for partition, _, _ in ranges:
        first = tables.chains.reached(trail.topic_id, partition)
        until = max(table.reached(trail.topic_id, partition) for table in before_chains)
        # Of the same number too: a batch that is read again ends earlier at what was deleted meanwhile.
        if first < until:
            yield partition, first, until
            return
    ahead = [table for table in before_chains if table.number > tables.chains.number]
    if ahead:
        raise LakeError(
            f"{ahead[0].name} has a batch that chains does not have, of another engine; go on with the engine that"
            " wrote it, or choose another directory"
        )


def _commit(
    lake: Lake, tables: Tables, trail: Trail, span: Range, chains: Mapping[Place, ChainState], now_ms: int
) -> tuple[Taken, dict[Place, ChainState]]:
    """Read a range and commit it; returns what it had, and the chains behind it."""
    links, part = Links(), lake.place(trail.topic_id, *span).with_suffix(PART)
    taken = take(trail, span, part, links=links)
    batch = Batch(trail.topic_id, taken.partition, trail.begin(taken.partition), now_ms, bool(taken.missed))
    found = follow(chains, batch, links.steps(), partial(_reread, trail, taken.partition))
    identifiers = {NUMBER: tables.chains.number + 1, identifier(trail.topic_id, taken.partition): taken.until}
    for table, names, condition in (
        (tables.dead_letters, IN_DEAD_LETTERS, IS_DEAD),
        (tables.events, IN_EVENTS, f"NOT {IS_DEAD}"),
    ):
        if table.reached(trail.topic_id, taken.partition) < taken.until:
            _append(table, part, condition, to_delta(names, trail.topic_id, now_ms), identifiers)
    replace_chains(tables.chains, found, identifiers)
    part.unlink()
    return taken, found


def _append(table: Table, part: Path, condition: str, columns: str, identifiers: Mapping[str, int]) -> None:
    with connected() as connection:
        rows = connection.read_parquet(str(part)).filter(condition)
        if rows.limit(1).fetchall():
            table.append(rows.project(columns), identifiers)


def _reread(trail: Trail, partition: int, source: str, first: int, until: int) -> Steps:
    """Give the entries of a chain between two offsets as steps, each by itself."""
    for batch in trail.batches(partition, first, until):
        for record in batch.records():
            if first <= record.offset < until:
                links = Links()
                links.add(record)
                yield from (step for step in links.steps() if step.entry.source == source)
