"""The topics that groups of the newer protocols subscribe to, as far as they see them."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Protocol

__all__ = ["Described", "Topics", "metadata_hash"]


class Described(Protocol):
    """A topic, as far as groups see it."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Mapping[int, object]: ...


class Topics(Protocol):
    """The topics that exist."""

    def get(self, name: str, /) -> Described | None: ...
    def by_id(self, topic_id: bytes, /) -> Described | None: ...


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """A number that changes when one of the named topics comes, goes or gets more partitions. 0 where none exists."""
    found = [topic for topic in map(topics.get, sorted(names)) if topic is not None]
    if not found:
        return 0
    digest = blake2b(digest_size=8)
    for topic in found:
        digest.update(topic.topic_id + len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)
