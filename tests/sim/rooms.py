"""How small a batch may be for which a thread makes room, where a disk is strained: batches of a run are all small."""

from collections.abc import Iterator
from contextlib import contextmanager

from kavka_broker.storage import preallocation


@contextmanager
def rooms_from(size_bytes: int) -> Iterator[None]:
    """Have room made for batches of so many bytes and more, by all nodes."""
    before, preallocation.ROOM_BYTES_MIN = preallocation.ROOM_BYTES_MIN, size_bytes  # type: ignore[misc]
    try:
        yield
    finally:
        preallocation.ROOM_BYTES_MIN = before  # type: ignore[misc]
