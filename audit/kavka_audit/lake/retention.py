"""How long the lake keeps rows, and how few files it keeps them in.

Files are deleted whole: the oldest of a partition first, as soon as all that a file holds is older than wanted. The
newest file of a partition stays, as its name says where reading goes on. Where chains were cut is written to
`cut.parquet` before: otherwise what was deleted would look like entries that are missing.

Small files are merged with their neighbours. The merged file takes its place first; the name of each that it was made
of lies within its own, so that readers leave those out until they are deleted, here or by the next run.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

import duckdb

from kavka_audit.lake.columns import CUTS
from kavka_audit.lake.completeness_results import DAY_MS, TOLD_DAYS
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import PART, Lake, span_of
from kavka_audit.lake.writing import write

MERGED_FILES_MIN: Final = 16
"""Small files beside each other that are worth a merge; with it, a row is written again a few times at most."""
SMALL_BYTES_MAX: Final = 4 << 20
MERGED_BYTES_MAX: Final = 64 << 20
NEWEST: Final = {
    "entries": "max(written_ms)",
    "counts": "max(greatest(coalesce(told_ms, 0), coalesce(bucket_ms, 0)))",
}
"""By table: the time of its newest row. A file without any time is as old as the file."""


def keep_lately(lake: Lake, now_ms: int, keep_days: int) -> int:
    """Delete the files whose rows are all older; returns how many."""
    days = {"entries": keep_days, "counts": min(keep_days, TOLD_DAYS)}
    old = [(table, file) for table in NEWEST for file in _old(lake, table, now_ms - days[table] * DAY_MS)]
    if files := [file for table, file in old if table == "entries"]:
        with connected() as connection:
            note_cuts(lake, [connection.read_parquet(lake.fetched(files), union_by_name=True)])
    for _, file in old:
        lake.remove(file)
    return len(old)


def merge(lake: Lake) -> int:
    """Merge small files; returns how many there are less."""
    return sum(_merged(lake, files) for table in NEWEST for files in _small(lake, table))


def _old(lake: Lake, table: str, limit_ms: int) -> Iterator[Path]:
    for files in _partitions(lake, table):
        for file in files[:-1]:
            if _newest_ms(lake, table, file) >= limit_ms:
                break
            yield file


def _newest_ms(lake: Lake, table: str, file: Path) -> int:
    with connected() as connection:
        ((newest_ms,),) = connection.read_parquet(lake.fetched([file])).aggregate(NEWEST[table]).fetchall()
    return int(newest_ms or file.stat().st_mtime * 1000)


def note_cuts(lake: Lake, old: Sequence[duckdb.DuckDBPyRelation]) -> None:
    """Write the last sequence of each chain in rows that are to be deleted, with those of cuts before."""
    if not old:
        return
    found = list[tuple[str, int]]()
    for rows in old:
        found += rows.filter("sequence IS NOT NULL").aggregate("source, max(sequence)").fetchall()
    if lake.cuts.exists():
        with connected() as connection:
            found += connection.read_parquet(str(lake.cuts)).fetchall()
    cuts: dict[str, int] = {}
    for source, sequence in found:
        cuts[source] = max(cuts.get(source, 0), sequence)
    write(lake, lake.cuts, [{"source": source, "sequence": cuts[source]} for source in sorted(cuts)], CUTS)


def _small(lake: Lake, table: str) -> Iterator[list[Path]]:
    """Give small files beside each other, as many at a time as make one."""
    for files in _partitions(lake, table):
        for is_small, beside in groupby(files, lambda file: lake.size_bytes(file) <= SMALL_BYTES_MAX):
            few, size = list[Path](), 0
            for file in beside if is_small else ():
                few.append(file)
                size += lake.size_bytes(file)
                if len(few) >= MERGED_FILES_MIN or size >= MERGED_BYTES_MAX:
                    yield few
                    few, size = [], 0


def _merged(lake: Lake, files: list[Path]) -> int:
    if len(files) < 2 or any(span_of(first)[2] != span_of(second)[1] for first, second in pairwise(files)):
        return 0
    partition, first, _ = span_of(files[0])
    place = lake.place(files[0].parent.name, partition, first, span_of(files[-1])[2], files[0].parent.parent.name)
    part = place.with_name(place.name + PART)
    with connected() as connection:
        rows = connection.read_parquet(lake.fetched(files), union_by_name=True)
        rows.write_parquet(str(part), compression="zstd")
    lake.settle(part, place)
    for file in files:
        lake.remove(file)
    return len(files) - 1


def _partitions(lake: Lake, table: str) -> Iterator[list[Path]]:
    """Give the files of each partition, the oldest first."""
    files = sorted((Path(file) for file in lake.files(table)), key=lambda file: (file.parent.name, *span_of(file)))
    for _, of_partition in groupby(files, lambda file: (file.parent.name, span_of(file)[0])):
        yield list(of_partition)
