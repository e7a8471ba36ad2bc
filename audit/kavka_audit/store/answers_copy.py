"""Copies the answers of a lake in a store into a directory, for those that show them; nothing of the trail.

It reads and holds no lease, so that it needs the rights to list and to get alone. A run writes its answers first and
says at its end how many rows they have: where that is as it was, nothing is fetched.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kavka_audit.lake.directory import PART, LakeError
from kavka_audit.lake.own_files import CLAIM, COUNTS_OF_ANSWERS
from kavka_audit.store.objects import Seen, Store

BYTES_MAX: Final = 256 * 1024 * 1024
"""Of all answers together."""


class AnswersCopy:
    """The answers of one lake. `directory` is empty at first, and belongs to this copy alone."""

    def __init__(
        self, store: Store, name: str, directory: Path, questions: Iterable[str], bytes_max: int = BYTES_MAX
    ) -> None:
        """`name` is that of the lake, for people; the answers are those to the questions of these names."""
        self._store, self.name, self.directory, self._bytes_max = store, name, directory, bytes_max
        self._answers = frozenset(f"tables/{question}.parquet" for question in questions)
        self._tag = ""  # of what the run said whose answers are here
        self._lock = threading.Lock()

    def claim(self) -> bytes:
        """Return what says whose the lake is; empty where no run has written it. Raises LakeError."""
        found = self._store.read(CLAIM)
        return b"" if found is None else found[0]

    def refresh(self) -> None:
        """Make the directory have the answers of the last run. Raises LakeError, and leaves what is there then."""
        with self._lock:
            said, tag = self._store.read(COUNTS_OF_ANSWERS) or (b"", "")
            if tag and tag == self._tag:
                return
            kept = [*self._kept()]
            if sum(seen.size for seen in kept) > self._bytes_max:
                raise LakeError(
                    f"{self.name}: its answers have more than {self._bytes_max:,} bytes, and are not copied"
                )
            for seen in kept:
                self._fetch(seen.key)
            for name in self._answers - {seen.key for seen in kept}:
                (self.directory / name).unlink(missing_ok=True)
            self._write(COUNTS_OF_ANSWERS, said)
            self._tag = tag

    def _kept(self) -> Iterator[Seen]:
        return (seen for seen in self._store.list("tables") if seen.key in self._answers)

    def _fetch(self, name: str) -> None:
        part = self._part(name)
        self._store.fetch(name, part)
        os.replace(part, self.directory / name)

    def _write(self, name: str, data: bytes) -> None:
        part = self._part(name)
        part.write_bytes(data)
        os.replace(part, self.directory / name)

    def _part(self, name: str) -> Path:
        place = self.directory / name
        place.parent.mkdir(exist_ok=True)
        return place.with_name(place.name + PART)
