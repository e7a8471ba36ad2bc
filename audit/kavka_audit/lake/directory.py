"""Where the lake's files stand, and how each record of the topic gets into it once.

    lake.json                                              the cluster that it is of
    entries/TOPIC_ID/PARTITION-FIRST-UNTIL.parquet         rows of the records from FIRST to before UNTIL
    counts/TOPIC_ID/PARTITION-FIRST-UNTIL.parquet          the same of reports, and of topics that they are about
    cut.parquet                                            where chains were cut, as rows got too old
    snapshot/TABLE.parquet                                 the cluster as it was when last asked
    tables/NAME.parquet                                    the answers, made again each time

A file is written beside its place, synced and renamed, so that one that is there is whole. The name says what it holds,
and the greatest UNTIL is where reading goes on: no offset is kept elsewhere that could disagree. A run that dies leaves
at most files and directories with the suffix `.part`, which the next one removes. One run at a time holds the lock.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PART: Final = ".part"
DIGITS: Final = 20
TABLES: Final = ("entries", "counts")
Span = tuple[int, int, int]
"""A partition, the first offset, and the one after the last."""


class LakeError(Exception):
    """The directory cannot serve; the message says why and what to do."""


class Lake:
    """A directory with the trail of one cluster."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.entries = directory / "entries"
        self.counts = directory / "counts"
        self.cuts = directory / "cut.parquet"
        self.snapshot = directory / "snapshot"
        self.tables = directory / "tables"

    @contextmanager
    def held(self, cluster_id: str) -> Iterator[None]:
        """Hold the directory for a run over this cluster. Raises LakeError."""
        try:
            for directory in (self.entries, self.counts, self.snapshot, self.tables):
                directory.mkdir(parents=True, exist_ok=True)
            lock = (self.directory / "lock").open("w")
        except OSError as problem:
            raise LakeError(f"{self.directory} cannot be written to: {problem.strerror}") from problem
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeError(f"another run holds {self.directory}; wait for its end") from None
            self._claim(cluster_id)
            self._tidy()
            yield

    def _tidy(self) -> None:
        """Delete what a run that died has left: files half written, and those that were merged into another."""
        for left in [*self.directory.rglob(f"*{PART}")]:
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)  # it may have stood in a directory that is deleted
        for table in TABLES:
            whole = set(self.files(table))
            for file in (self.directory / table).glob("*/*.parquet"):
                if str(file) not in whole:
                    file.unlink()

    def _claim(self, cluster_id: str) -> None:
        """Take the directory for this cluster. Raises LakeError where it is another's."""
        file = self.directory / "lake.json"
        if not file.exists():
            self.put(file, json.dumps({"cluster_id": cluster_id}).encode())
            return
        try:
            found = json.loads(file.read_bytes())["cluster_id"]
        except (ValueError, KeyError, TypeError) as problem:
            raise LakeError(f"{file} is not what a run has written; choose another directory") from problem
        if found != cluster_id:
            words = f"holds the trail of cluster {found}, and this is {cluster_id}; choose another directory"
            raise LakeError(f"{self.directory} {words}")

    def put(self, place: Path, data: bytes) -> None:
        """Write a small file whole."""
        part = place.with_name(place.name + PART)
        part.write_bytes(data)
        self.settle(part, place)

    def settle(self, part: Path, place: Path) -> None:
        """Have a written file take its place: all of it is on disk, or the place is as it was."""
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(place)
        directory = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

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
            partition, _, until = span_of(file)
            found[partition] = max(found.get(partition, 0), until)
        return found

    def files(self, table: str = "entries") -> list[str]:
        """Return the files of a table, without those that were merged into another."""
        found = sorted((self.directory / table).glob("*/*.parquet"), key=_widest_first)
        return sorted(str(file) for file in _uncovered(found))


def span_of(file: Path) -> Span:
    """Return the partition of a file, its first offset and the one after its last."""
    partition, first, until = (int(text) for text in file.stem.split("-"))
    return partition, first, until


def _widest_first(file: Path) -> tuple[str, int, int, int]:
    partition, first, until = span_of(file)
    return file.parent.name, partition, first, -until


def _uncovered(files: Iterable[Path]) -> Iterator[Path]:
    covered: tuple[object, int] = (None, 0)
    for file in files:
        partition, _, until = span_of(file)
        place = file.parent.name, partition
        if place != covered[0] or until > covered[1]:
            covered = place, until
            yield file
