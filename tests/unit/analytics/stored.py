"""An S3 store in memory, which a run may be cut off from after so many requests, and a lake in it. Delta tables stand
in a directory beside it, as deltalake reaches no other program's memory.
"""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kavka_audit.lake.directory import Lake, TablePlace
from kavka_audit.store.lease import LEASE_SECONDS, Lease
from kavka_audit.store.mirror import Mirror
from kavka_audit.store.objects import Seen

NAME = "s3://bucket/audit"


class Died(Exception):
    """The run is ended here."""


@dataclass
class Objects:
    """What a store has; whether it minds conditions."""

    kept: dict[str, bytes] = field(default_factory=dict)
    is_conditional: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)
    tables: Path | None = None
    """Where Delta tables stand."""

    def names(self, *beginnings: str) -> list[str]:
        return sorted(name for name in self.kept if name.startswith(beginnings))


@dataclass
class Connection:
    """The way of one run to the store: after `left` requests nothing is answered, and with `is_done` the last of
    them is done all the same.
    """

    objects: Objects
    left: int = -1
    is_done: bool = False
    asked: list[str] = field(default_factory=list)

    is_cut: bool = False

    def _ask(self, what: str) -> None:
        with self.objects.lock:
            if not self.is_cut:
                self.asked.append(what)
                self.left -= 1
                self.is_cut = self.left == 0
            if self.is_cut and (self.left != 0 or not self.is_done):
                raise Died
            self.left -= self.is_cut

    def _answered(self) -> None:
        """Raise Died where the answer gets lost."""
        if self.is_cut:
            raise Died

    def list(self, below: str = "") -> Iterator[Seen]:
        self._ask("list")
        for key, data in sorted(self.objects.kept.items()):
            if key.startswith(below):
                yield Seen(key, len(data), 1_000.0)
        if (tables := self.objects.tables) is not None:
            for file in sorted((tables / below).rglob("*")):
                if file.is_file():
                    yield Seen(file.relative_to(tables).as_posix(), file.stat().st_size, 1_000.0)

    def read(self, key: str) -> tuple[bytes, str] | None:
        self._ask(f"read {key}")
        data = self.objects.kept.get(key)
        return None if data is None else (data, tag_of(data))

    def fetch(self, key: str, file: Path) -> None:
        self._ask(f"fetch {key}")
        tables = self.objects.tables
        if tables is not None and (tables / key).exists():
            file.write_bytes((tables / key).read_bytes())
        else:
            file.write_bytes(self.objects.kept[key])

    def put(self, key: str, file: Path) -> None:
        self._ask(f"put {key}")
        tables = self.objects.tables
        if tables is not None and (tables / key.partition("/")[0] / "_delta_log").exists():
            (tables / key).parent.mkdir(exist_ok=True)
            (tables / key).write_bytes(file.read_bytes())
        else:
            self.objects.kept[key] = file.read_bytes()
        self._answered()

    def copy(self, key: str, place: str) -> None:
        self._ask(f"copy {key}")
        self.objects.kept[place] = self.objects.kept[key]
        self._answered()

    def create(self, key: str, data: bytes) -> str | None:
        self._ask(f"create {key}")
        if self.objects.is_conditional and key in self.objects.kept:
            return None
        self.objects.kept[key] = data
        self._answered()
        return tag_of(data)

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        self._ask(f"replace {key}")
        if self.objects.is_conditional and tag_of(self.objects.kept.get(key, b"")) != tag:
            return None
        self.objects.kept[key] = data
        self._answered()
        return tag_of(data)

    def delete(self, key: str) -> None:
        self._ask(f"delete {key}")
        self.objects.kept.pop(key, None)
        self._answered()

    def table_place(self) -> TablePlace:
        assert self.objects.tables is not None
        return TablePlace(str(self.objects.tables))

    def words(self, problem: str) -> str:
        return f"the store says {len(problem)} characters"


def tag_of(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


@dataclass
class Time:
    """A clock that moves when somebody sleeps."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def lease_of(connection: Connection, time: Time | None = None, holder: str = "here") -> Lease:
    clock = time or Time()
    return Lease(connection, NAME, holder, LEASE_SECONDS, clock, clock.sleep)


def lake_in(connection: Connection, directory: Path, time: Time | None = None, table_format: str = "parquet") -> Lake:
    """A lake in the store, worked on in the directory."""
    return Lake(directory, Mirror(connection, NAME, lease_of(connection, time)), table_format)
