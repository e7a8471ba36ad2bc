"""Converts a directory of Parquet files into one of Delta tables, which goes on where it ends.

Each file of rows is a batch, committed as one of the trail is: a conversion that is interrupted goes on with the file
that it was at, and has each row once; until it has come to its end, no run goes on with the target. The source is held
and read, and nothing in it is changed. What is no table stays a Parquet file, and is copied: what clients count, where
chains were cut, verdicts on completeness.

Rows do not hold the hashes of their entries, so no chain can be judged by them. Chains are noted as `unchecked`, and
judged from the first entry that is read from the topic.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kavka_audit.delta.chain_rows import known_chains, replace_chains
from kavka_audit.delta.chain_states import CHAINS_MAX, UNCHECKED, ChainState, Place
from kavka_audit.delta.columns import IN_DEAD_LETTERS, IN_EVENTS, to_delta
from kavka_audit.delta.tables import NUMBER, Table, Tables, identifier
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import PART, Lake, span_of
from kavka_audit.lake.ingest import Ingested

IS_DEAD: Final = "kind = 'dead'"
VERDICTS: Final = "completeness.parquet"


def convert(source: Lake, target: Lake, now_ms: int) -> Iterator[Ingested]:
    """Take the rows of a lake into the tables of another, both held; gives what was taken so far, file by file. Raises
    LakeError.
    """
    tables, so_far = Tables(target), Ingested()
    for file in sorted(map(Path, source.files()), key=lambda file: (file.parent.name, *span_of(file))):
        partition, _, until = span_of(file)
        if tables.chains.reached(file.parent.name, partition) < until:
            so_far.records += _convert_file(tables, file, now_ms)
        yield so_far
    for copied in (*map(Path, source.files("counts")), source.cuts, source.tables / VERDICTS):
        _copy(target, copied, target.directory / copied.relative_to(source.directory))


def _convert_file(tables: Tables, file: Path, now_ms: int) -> int:
    """Commit the rows of a file that the tables do not have; returns how many `events` and `dead_letters` got."""
    topic_id, (partition, _, until) = file.parent.name, span_of(file)
    identifiers = {NUMBER: tables.chains.number + 1, identifier(topic_id, partition): until}
    count = 0
    for table, names, condition in (
        (tables.dead_letters, IN_DEAD_LETTERS, IS_DEAD),
        (tables.events, IN_EVENTS, f"NOT {IS_DEAD}"),
    ):
        reached = table.reached(topic_id, partition)
        if reached < until:
            wanted = f'{condition} AND "offset" >= {reached}'
            count += _append(table, file, wanted, to_delta(names, topic_id, now_ms), identifiers)
    chains = known_chains(tables.chains)
    for place, chain in _chains_in(file, topic_id, partition, now_ms).items():
        if len(chains) < CHAINS_MAX:
            chains.setdefault(place, chain)
    replace_chains(tables.chains, chains, identifiers)
    return count


def _append(table: Table, file: Path, condition: str, columns: str, identifiers: Mapping[str, int]) -> int:
    with connected() as connection:
        found = connection.read_parquet(str(file))
        shape = (
            f'"{name}"' if name in found.columns else f'CAST(NULL AS {kind}) AS "{name}"'
            for name, kind in ENTRIES.items()  # an older file lacks what was added since
        )
        rows = found.project(", ".join(shape)).filter(condition)
        ((count,),) = rows.count("*").fetchall()
        if count:
            table.append(rows.project(columns), identifiers)
        return int(count)


def _chains_in(file: Path, topic_id: str, partition: int, now_ms: int) -> dict[Place, ChainState]:
    """Return the chains of which a file has entries, as chains that were read up to a hole."""
    with connected() as connection:
        rows = connection.read_parquet(str(file)).filter("source IS NOT NULL AND sequence IS NOT NULL")
        sources = [str(source) for (source,) in rows.project("source").distinct().order("source").fetchall()]
    found = (
        ChainState(topic_id, partition, source, verdict=UNCHECKED, read_ms=now_ms, is_before_hole=True)
        for source in sources
    )
    return {chain.place: chain for chain in found}


def _copy(target: Lake, file: Path, place: Path) -> None:
    """Copy a file, unless it is not there, or was copied before."""
    if file.exists() and not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(place.name + PART)
        shutil.copyfile(file, part)
        target.settle(part, place)
