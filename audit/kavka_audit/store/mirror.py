"""A lake in a store, worked on in a directory that mirrors it.

At the start of a run the directory is made to name what the store has: files that the store does not have are deleted,
and those that the directory does not have are fetched; those of `entries`, by far the most, when they are asked for. A
file of `entries` and `counts` never changes, so one of the same name and size is not fetched again; the few other files
that a run reads are always fetched. What a run that died had beside the lake is deleted. From then on each file
goes to the store before it takes its place here, and leaves the store before it leaves here. So the store alone says
how far the trail was taken in, and a run may die, and the directory be lost, at any moment.

Delta tables stand in the store alone: deltalake reads and writes their logs there, and files of rows, which never
change, are fetched where DuckDB reads them.

Writing is the right of the run that has the lease. Files that overlap, without one holding all of the other, were
written by two: their rows would count twice, so the run ends and names them.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kavka_audit.lake.completeness_results import MARK
from kavka_audit.lake.completeness_results import TABLE as VERDICTS
from kavka_audit.lake.directory import PART, TABLES, LakeError, TablePlace, covering, span_of
from kavka_audit.lake.own_files import CLAIM, COUNTS_OF_ANSWERS, MIRROR, ranges
from kavka_audit.store.lease import Lease
from kavka_audit.store.objects import Seen, Store

FETCHES_MAX: Final = 8
"""Objects that are fetched at a time."""
RANGE: Final = re.compile(rf"({'|'.join(TABLES)})/[A-Za-z0-9_-]{{1,64}}/[0-9]+-[0-9]{{20}}-[0-9]{{20}}\.parquet")
LARGE: Final = "entries"
"""The table of whose files a directory may have the names alone."""
STAGED: Final = re.compile(rf"spark-[0-9a-f]{{32}}-[a-z_]+{re.escape(PART)}/")
"""What executors of Spark write beside the lake (`spark.storage`)."""
DELTA_TABLES: Final = ("events", "dead_letters", "chains")
OF_DELTA: Final = re.compile(
    r"part-[0-9]{5}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-c[0-9]{3}(\.[a-z0-9]+)?\.parquet"
)
CHANGING: Final = ("cut.parquet", f"snapshot/{MARK}", f"tables/{VERDICTS}.parquet", COUNTS_OF_ANSWERS)
"""What a run reads of the one before beside ranges of the trail; all else it makes again."""
Progress = Callable[[str], None]


class Mirror:
    """The keeper of a lake in a store."""

    def __init__(
        self,
        store: Store,
        name: str,
        lease: Lease,
        progress: Progress = lambda _: None,
        *,
        has_own_directory: bool = False,
    ) -> None:
        """`has_own_directory`: nothing but a copy of this store was ever in the directory, as no user has chosen it."""
        self._store, self.name, self._lease, self._progress = store, name, lease, progress
        self._has_own_directory = has_own_directory
        self._afar: dict[str, Seen] = {}  # of which the directory has the names alone

    @contextmanager
    def held(self, directory: Path) -> Iterator[None]:
        """Hold the lake for one run, and learn whose it is. Raises LakeError."""
        self._progress(f"waiting for {self.name}")
        with self._lease.held():
            self._check_is_copy(directory)
            (directory / CLAIM).unlink(missing_ok=True)
            if (found := self._store.read(CLAIM)) is not None:
                (directory / CLAIM).write_bytes(found[0])
            yield

    def _check_is_copy(self, directory: Path) -> None:
        """Raise LakeError where a directory has a trail that is no copy: to mirror a store would delete it."""
        mark = directory / MIRROR
        if mark.exists():
            return
        has_tables = any((directory / table / "_delta_log").exists() for table in DELTA_TABLES)
        here = {file.relative_to(directory).as_posix() for table in TABLES for file in ranges(directory, table)}
        is_copy = not here or self._has_own_directory or here <= {seen.key for seen in self._store.list()}
        if has_tables or not is_copy:
            raise LakeError(
                f"{directory} has a trail of its own, which is no copy of {self.name}; name another --work-directory,"
                " or delete it where it is an old copy: it is fetched again"
            )
        mark.write_text(json.dumps({"mirror_of": self.name}))

    def fetch(self, directory: Path) -> None:
        """Make the directory have what is kept, and no more. Raises LakeError."""
        found = [*self._store.list()]
        for left in found:
            if STAGED.match(left.key):
                self.remove(left.key)
        kept = {seen.key: seen for seen in found if seen.key in CHANGING or RANGE.fullmatch(seen.key)}
        _check(self.name, kept)
        for file in _here(directory):
            if file.relative_to(directory).as_posix() not in kept:
                file.unlink(missing_ok=True)
        lacking = [seen for seen in kept.values() if not _is_here(directory, seen)]
        self._afar = {seen.key: seen for seen in lacking if seen.key.startswith(f"{LARGE}/")}
        for key in self._afar:
            (directory / key).parent.mkdir(parents=True, exist_ok=True)
            (directory / key).write_bytes(b"")
        self._fetch_all(directory, [seen for seen in lacking if seen.key not in self._afar])

    def bring(self, directory: Path, names: Iterable[str]) -> None:
        """Make the directory have the content of these files. Raises LakeError."""
        wanted = [self._afar[name] for name in names if name in self._afar]
        self._fetch_all(directory, wanted)
        for seen in wanted:
            del self._afar[seen.key]

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file of which the directory has the name alone; None of any other."""
        return self._afar[name].size if name in self._afar else None

    def _fetch_all(self, directory: Path, lacking: Sequence[Seen]) -> None:
        with ThreadPoolExecutor(FETCHES_MAX) as pool:
            for count, _ in enumerate(pool.map(lambda seen: self._fetch(directory, seen), lacking), 1):
                self._progress(f"{count:,} of {len(lacking):,} files fetched from {self.name}")

    def _fetch(self, directory: Path, seen: Seen) -> None:
        place = directory / seen.key
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(place.name + PART)
        self._store.fetch(seen.key, part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        # A file without any time in it is as old as the object.
        os.utime(part, (seen.modified_seconds, seen.modified_seconds))
        part.replace(place)

    def keep(self, part: Path, name: str) -> None:
        """Keep a file that is written, under its name in the directory. Raises LakeError."""
        self._lease.check()
        self._store.put(name, part)

    def table_place(self) -> TablePlace:
        """Return where Delta tables stand. Raises LakeError."""
        return self._store.table_place()

    def check(self) -> None:
        """Raise LakeError unless this run has the lease."""
        self._lease.check()

    def bring_tables(self, directory: Path, table: str, names: Sequence[str]) -> None:
        """Make the directory have these files of a Delta table, and no other files of it. Raises LakeError."""
        wanted = {directory / name for name in names}
        for file in [*(directory / table).glob("*.parquet"), *(directory / table).glob("day=*/*.parquet")]:
            if file not in wanted and OF_DELTA.fullmatch(file.name):
                file.unlink()
        now = time.time()
        self._fetch_all(directory, [Seen(name, 0, now) for name in names if not (directory / name).exists()])

    def kept_names(self, table: str) -> set[str]:
        """Return the names of all files that stand below a name in the store. Raises LakeError."""
        return {seen.key for seen in self._store.list(table)}

    def words(self, problem: str) -> str:
        """Return what another client of the store says of a problem, without anything secret."""
        return self._store.words(problem)

    def adopt(self, staged: str, name: str, size_bytes: int) -> None:
        """Keep what stands beside the files under a name of theirs. Raises LakeError."""
        self._lease.check()
        self._store.copy(staged, name)
        self._afar[name] = Seen(name, size_bytes, time.time())

    def remove(self, name: str) -> None:
        """Keep a file no longer. Raises LakeError."""
        self._lease.check()
        self._store.delete(name)
        self._afar.pop(name, None)


def _here(directory: Path) -> list[Path]:
    """Return the files of the directory that are a lake's own."""
    of_tables = [file for table in TABLES for file in ranges(directory, table)]
    return [*of_tables, *(directory / name for name in CHANGING)]


def _is_here(directory: Path, seen: Seen) -> bool:
    file = directory / seen.key
    return seen.key not in CHANGING and file.exists() and file.stat().st_size == seen.size


def _check(name: str, kept: Mapping[str, Seen]) -> None:
    """Raise LakeError where files overlap without one holding all of the other."""
    for table in TABLES:
        for first, second in _overlapping(Path(key) for key in kept if key.startswith(f"{table}/")):
            words = "hold some records both, as two runs have written at once"
            raise LakeError(
                f"{name}: {first} and {second} {words}; delete the second, and those of its partition that begin later:"
                " what they hold is read again"
            )


def _overlapping(files: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    last: Path | None = None
    for file in covering(files):
        if last is not None and last.parent == file.parent:
            (partition, _, until), (other, first, _) = span_of(last), span_of(file)
            if partition == other and first < until:
                yield last, file
        last = file
