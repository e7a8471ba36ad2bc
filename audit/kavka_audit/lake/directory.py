"""Where the lake's files stand, and how each record of the topic gets into it once.

    lake.json                                              the cluster that it is of, and the format of its tables
    entries/TOPIC_ID/PARTITION-FIRST-UNTIL.parquet         rows of the records from FIRST to before UNTIL
    counts/TOPIC_ID/PARTITION-FIRST-UNTIL.parquet          the same of reports, and of topics that they are about
    cut.parquet                                            where chains were cut, as rows got too old
    snapshot/TABLE.parquet                                 the cluster as it was when last asked
    tables/NAME.parquet                                    the answers, made again each time

A file is written beside its place, synced and renamed, so that one that is there is whole. The name says what it holds,
and the greatest UNTIL is where reading goes on: no offset is kept elsewhere that could disagree. A run that dies leaves
at most files and directories with the suffix `.part`, which the next one removes. One run at a time holds the lock.

The files may be kept elsewhere too, as objects of a store. The directory is then a mirror: what was written goes there
first and takes its place here afterwards, and what is deleted is deleted there first. Of `entries`, by far the most,
the directory may have the names alone: such a file is empty here until `fetched` asks for it.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

from kavka_audit.lake.own_files import (
    CLAIM,
    MADE,
    MIRROR,
    PART,
    TABLES,
    is_range,
    is_whole,
    ranges,
    unfinished,
    unknown,
)

__all__ = ["PART", "TABLES", "Keeper", "Lake", "LakeError", "Span", "covering", "damaged", "span_of", "sync_path"]

DIGITS: Final = 20
UNFINISHED: Final = "is_unfinished_conversion"
"""The mark in `lake.json` of a directory into which another one is being converted: it has a part of that."""
HALF_CONVERTED: Final = "has a part of another directory; end that by `kavka audit convert`"
ALREADY_HERE: Final = (
    "has files of a run already, or of a conversion that has come to its end; convert into a new directory"
)
Span = tuple[int, int, int]
"""A partition, the first offset, and the one after the last."""


class LakeError(Exception):
    """The directory cannot serve; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where Delta tables stand: an address as deltalake takes it, what it needs to reach that, and the certificates to
    trust there, as PEM; none: those that it finds itself.
    """

    address: str
    options: Mapping[str, str] = field(default_factory=dict)
    certificates: str = ""


class Keeper(Protocol):
    """Where the files of a lake are kept beside its directory. Each method raises LakeError."""

    name: str

    def held(self, directory: Path) -> AbstractContextManager[None]:
        """Hold the place for one run, once it is known whose it is: `lake.json` is in the directory then, if any."""

    def fetch(self, directory: Path) -> None:
        """Make the directory have what is kept, and no more."""

    def keep(self, part: Path, name: str) -> None:
        """Keep a file that is written, under its name in the directory."""

    def adopt(self, staged: str, name: str, size_bytes: int) -> None:
        """Keep what stands beside the files under a name of theirs."""

    def remove(self, name: str) -> None:
        """Keep a file no longer."""

    def bring(self, directory: Path, names: Iterable[str]) -> None:
        """Make the directory have the content of these files."""

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file of which the directory has the name alone; None of any other."""

    def table_place(self) -> TablePlace:
        """Return where Delta tables stand."""

    def check(self) -> None:
        """Raise LakeError unless this run may change what is kept."""

    def bring_tables(self, directory: Path, table: str, names: Sequence[str]) -> None:
        """Make the directory have these files of a Delta table, and no other files of it."""

    def kept_names(self, table: str) -> set[str]:
        """Return the names of all files that stand below a name in the directory."""

    def words(self, problem: str) -> str:
        """Return what another client of the same place says of a problem, without anything secret."""


class Lake:
    """A directory with the trail of one cluster."""

    def __init__(
        self,
        directory: Path,
        keeper: Keeper | None = None,
        table_format: str = "parquet",
        *,
        is_converted: bool = False,
    ) -> None:
        self.directory, self.table_format = directory, table_format
        self._is_converted = is_converted  # by this run, of another directory
        self.keeper = keeper
        self.name = str(directory) if keeper is None else keeper.name
        self.entries = directory / "entries"
        self.counts = directory / "counts"
        self.cuts = directory / "cut.parquet"
        self.snapshot = directory / "snapshot"
        self.tables = directory / "tables"
        self.unknown: list[Path] = []
        """Files among those of the trail that no run has written, as they were when the lake was taken."""
        self.lock = -1
        """The lock's descriptor, while the lake is held: a process that has it too holds the lake with this one."""
        self.wanted_cluster = ""
        """The cluster that heads of the trail have to name, where that was asked for."""
        self._holder = ""  # the cluster for which this run holds it

    @contextmanager
    def held(self, cluster_id: str) -> Iterator[None]:
        """Hold the directory for a run over this cluster; a run that goes on holds it already. Raises LakeError."""
        if self._holder:
            if self._holder != cluster_id:
                raise LakeError(f"{self.name} is held for cluster {self._holder}, and this is {cluster_id}; run again")
            yield
            return
        try:
            for directory in (self.entries, self.counts, self.snapshot, self.tables):
                directory.mkdir(parents=True, exist_ok=True)
            lock = (self.directory / "lock").open("a")
        except OSError as problem:
            raise LakeError(f"{self.directory} cannot be written to: {problem.strerror}") from problem
        with self._locked(lock):
            self.lock = lock.fileno()
            if self.keeper is None and (self.directory / MIRROR).exists():
                words = "is a copy of a bucket, whose next run deletes what the bucket does not have"
                raise LakeError(f"{self.directory} {words}; choose another place")
            with nullcontext() if self.keeper is None else self.keeper.held(self.directory):
                self._claim(cluster_id)
                if self.keeper is not None:
                    self.keeper.fetch(self.directory)
                self._tidy()
                self.unknown = unknown(self.directory)
                self._check()
                self._holder = cluster_id
                try:
                    yield
                finally:
                    self._holder = ""

    @property
    def cluster_id(self) -> str:
        """Return the cluster for which this run holds the directory; an empty text where none does."""
        return self._holder

    @property
    def trail_cluster(self) -> str:
        """Return the cluster whose trail it is to be: a copy of a trail may stand in another cluster."""
        return self.wanted_cluster or self._holder

    def _tidy(self) -> None:
        """Delete what a run that died has left: files half written, and those that were merged into another."""
        for left in unfinished(self.directory):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)
        for table in TABLES:
            whole = set(self.files(table))
            for file in [*ranges(self.directory, table)]:
                if str(file) not in whole:
                    self.remove(file)

    def here(self) -> Iterator[Path]:
        """Yield the files that a run reads and has not made itself, those whose content is here."""
        for table in TABLES:
            for file in map(Path, self.files(table)):
                if self.keeper is None or self.keeper.size_bytes(self.named(file)) is None:
                    yield file
        yield from (file for file in (self.cuts, self.tables / "completeness.parquet") if file.exists())

    def _check(self) -> None:
        """Raise LakeError where a file is damaged: a copy or a full disk may have cut it short."""
        for file in self.here():
            if not is_whole(file):
                raise damaged(self, file)

    def _claim(self, cluster_id: str) -> None:
        """Take the directory for this cluster. Raises LakeError where it is another's."""
        file = self.directory / CLAIM
        if not file.exists():
            self._check_unclaimed()
            self._put_claim(cluster_id, {UNFINISHED: True} if self._is_converted else {})
            return
        found, table_format = self.claim()
        if found != cluster_id:
            words = f"holds the trail of cluster {found}, and this is {cluster_id}; choose another place"
            raise LakeError(f"{self.name} {words}")
        if table_format != self.table_format:
            words = f"has its tables in the format {table_format}, and {self.table_format} is asked for"
            raise LakeError(f"{self.name} {words}; choose another place, or --table-format {table_format}")

    def end_conversion(self, cluster_id: str) -> None:
        """Say that all of another directory is here, so that runs may go on with it."""
        self._put_claim(cluster_id, {})

    def _put_claim(self, cluster_id: str, more: Mapping[str, bool]) -> None:
        claim = {"cluster_id": cluster_id, "table_format": self.table_format, **more}
        self.put(self.directory / CLAIM, json.dumps(claim).encode())

    @contextmanager
    def read(self) -> Iterator[None]:
        """Hold the directory without changing anything in it. Raises LakeError."""
        try:
            lock = (self.directory / "lock").open("rb")
        except OSError as problem:
            raise LakeError(f"{self.name}/lock: {problem.strerror}; no run has written here") from problem
        with self._locked(lock):
            self._check()
            yield

    @contextmanager
    def _locked(self, lock: IO[Any]) -> Iterator[None]:
        """Take the lock, a file that is closed in the end. Raises LakeError where another run has it."""
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeError(f"another run holds {self.directory}; wait for its end") from None
            yield

    def claim(self) -> tuple[str, str]:
        """Return whose the directory is, by the cluster's id, and the format of its tables. Raises LakeError."""
        try:
            claim = json.loads((self.directory / CLAIM).read_bytes())
            if bool(claim.get(UNFINISHED)) != self._is_converted:
                raise LakeError(f"{self.name} {ALREADY_HERE if self._is_converted else HALF_CONVERTED}")
            return claim["cluster_id"], claim.get("table_format", "parquet")
        except OSError as problem:
            raise LakeError(f"{self.name}/{CLAIM}: {problem.strerror}; no run has written here") from problem
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise LakeError(f"{self.name}/{CLAIM} is not what a run has written; choose another place") from problem

    def _check_unclaimed(self) -> None:
        """Raise LakeError where a run would write over files of others. What mirrors a store is a run's own."""
        others = [self.directory / name for name in MADE] if self.keeper is None else []
        if (found := next(filter(Path.exists, others), None)) is not None:
            words = (
                f"has a {found.name} and no {CLAIM}, so no run has written it; choose another place, or move the file"
            )
            raise LakeError(f"{self.name} {words}")

    def put(self, place: Path, data: bytes) -> None:
        """Write a small file whole."""
        part = place.with_name(place.name + PART)
        part.write_bytes(data)
        self.settle(part, place)

    def settle(self, part: Path, place: Path) -> None:
        """Have a written file take its place: all of it is on disk, or the place is as it was."""
        sync_path(part)
        if self.keeper is not None:
            self.keeper.keep(part, self.named(place))
        part.replace(place)
        sync_path(place.parent)

    def adopt(self, staged: str, place: Path, size_bytes: int) -> None:
        """Have what stands beside the lake where it is kept take its place there; here it is a name."""
        assert self.keeper is not None, "a directory alone has nothing beside it"
        self.keeper.adopt(staged, self.named(place), size_bytes)
        place.write_bytes(b"")

    def fetched(self, files: Iterable[Path | str]) -> list[str]:
        """Return files whose content is here."""
        found = [str(file) for file in files]
        if self.keeper is not None:
            self.keeper.bring(self.directory, [self.named(Path(file)) for file in found])
        return found

    def size_bytes(self, file: Path) -> int:
        """Return the size of a file, whose content may not be here."""
        kept = None if self.keeper is None else self.keeper.size_bytes(self.named(file))
        return file.stat().st_size if kept is None else kept

    def remove(self, file: Path) -> None:
        """Delete a file, if it is there."""
        if self.keeper is not None:
            self.keeper.remove(self.named(file))
        file.unlink(missing_ok=True)

    def named(self, file: Path) -> str:
        """Return the name of a file in the directory."""
        return file.relative_to(self.directory).as_posix()

    def place(self, topic_id: str, partition: int, first: int, until: int, table: str = "entries") -> Path:
        """Return where the rows of these records go."""
        assert first < until, (first, until)
        directory = self.directory / table / topic_id
        directory.mkdir(exist_ok=True)
        return directory / f"{partition}-{first:0{DIGITS}}-{until:0{DIGITS}}.parquet"

    def next_offsets(self, topic_id: str, table: str = "entries") -> dict[int, int]:
        """Return where reading goes on, by partition; 0 where nothing was read."""
        found: dict[int, int] = {}
        for file in (self.directory / table / topic_id).glob("*.parquet"):
            if not is_range(file.name):
                continue
            partition, _, until = span_of(file)
            found[partition] = max(found.get(partition, 0), until)
        return found

    def files(self, table: str = "entries") -> list[str]:
        """Return the files of a table, without those that were merged into another."""
        return sorted(str(file) for file in covering(ranges(self.directory, table)))


def sync_path(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk. Raises OSError."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def damaged(lake: Lake, file: Path) -> LakeError:
    """Return the error of a file that cannot be read: it names the file and says what to do."""
    if is_range(file.name):
        what = "delete it, and those of its partition that begin later: what the trail still has of them is read again"
    elif file == lake.cuts:
        what = (
            "put a copy of it back; if there is none, delete it: entries that were deleted by age then count as missing"
        )
    else:
        what = "delete it: it is made again"
    if lake.keeper is not None:
        what = f"delete it: it is fetched again. If that is damaged too, it is so in {lake.name}: there, {what}"
    return LakeError(f"{file} is damaged; {what}")


def span_of(file: Path) -> Span:
    """Return the partition of a file, its first offset and the one after its last."""
    partition, first, until = (int(text) for text in file.stem.split("-"))
    return partition, first, until


def by_topic(files: Iterable[str]) -> dict[str, list[str]]:
    """Return files of the trail by the id of their topic."""
    found = dict[str, list[str]]()
    for file in files:
        found.setdefault(Path(file).parent.name, []).append(file)
    return found


def _widest_first(file: Path) -> tuple[str, int, int, int]:
    partition, first, until = span_of(file)
    return file.parent.name, partition, first, -until


def covering(files: Iterable[Path]) -> Iterator[Path]:
    """Give files by topic, partition and offset, without those whose range lies within that of another."""
    covered: tuple[object, int] = (None, 0)
    for file in sorted(files, key=_widest_first):
        partition, _, until = span_of(file)
        place = file.parent.name, partition
        if place != covered[0] or until > covered[1]:
            covered = place, until
            yield file
