"""The seam to an S3 store: eight requests, no more than a lake needs, and how deltalake reaches the same objects.

An object is there as a whole or not at all, and a list tells all that were put before it was asked for. `create` and
`replace` are decided by the store itself: of two that ask at once, one is told that the other was first.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from kavka_audit.lake.directory import LakeError, TablePlace


class StoreError(LakeError):
    """The store does not do what it was asked; the message says why and what to do, and holds no credentials."""


class Seen(NamedTuple):
    """An object in a list."""

    key: str
    size: int
    modified_seconds: float


class Store(Protocol):
    """Objects by keys, which begin behind the prefix of the lake. Each method raises StoreError."""

    def list(self, below: str = "") -> Iterable[Seen]:
        """Give all objects, or those below a prefix of whole names."""

    def read(self, key: str) -> tuple[bytes, str] | None:
        """Return a small object and its tag, which no other content has; None where there is none."""

    def fetch(self, key: str, file: Path) -> None:
        """Write an object into a file."""

    def put(self, key: str, file: Path) -> None:
        """Make an object of a file, in the place of one that is there."""

    def copy(self, key: str, place: str) -> None:
        """Make an object of another, in the place of one that is there."""

    def create(self, key: str, data: bytes) -> str | None:
        """Make an object and return its tag; None where there is one already."""

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Put an object in the place of the one with this tag and return the new tag; None where there is another."""

    def delete(self, key: str) -> None:
        """Delete an object; there may be none."""

    def table_place(self) -> TablePlace:
        """Return how deltalake reaches the prefix."""

    def words(self, problem: str) -> str:
        """Return what is wrong by the text of another client's error, and what to do."""
