"""Walks over the batches of a segment's file, header by header, and says where one does not hold.

Base offset, length, leader epoch and magic stand before a batch's CRC, and a walk looks at nothing behind it: so each
step asks whether this can be a batch at all. Its magic and length are a batch's, it ends within the file, and its
offsets begin where the batch before has ended, or later (compaction leaves gaps). What does not hold is `Damage`, with
its place; `resync` looks for the next batch behind it, which has to have a right CRC.

The file is read in small windows: a slice of its map would bring in everything up to its end.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import (
    EXTENT,
    EXTENT_BYTES,
    HEADER,
    HEADER_BYTES,
    LENGTH_MIN,
    MAGIC,
    PREFIX_BYTES,
    BatchHeader,
    crc_is_valid,
    read_extent,
)
from kavka_broker.storage.disk import File

#: For a search: the stretch between two entries of an index, and a header.
WINDOW_BYTES: Final = 8 * 1024
#: For a walk over all of it.
LONG_WINDOW_BYTES: Final = 256 * 1024
#: How far the loop looks for the next sound batch.
RESYNC_BYTES_MAX: Final = 4 * 1024 * 1024
assert HEADER_BYTES <= WINDOW_BYTES <= LONG_WINDOW_BYTES <= RESYNC_BYTES_MAX, "a window holds a header"
ANY_OFFSET: Final = 2**63 - 1
_MAGIC_AT: Final = 16
assert _MAGIC_AT < EXTENT_BYTES <= HEADER_BYTES, "a batch's extent says its magic, and its header its extent"
_EMPTY: Final = memoryview(b"")


class Damage(ProtocolViolation):
    """No sound batch stands at `position`, where one should begin with `next_offset` or later."""

    def __init__(self, path: str, position: int, next_offset: int, reason: str) -> None:
        super().__init__(f"{path}: no sound batch at position {position}, offset {next_offset}: {reason}")
        self.position = position
        self.next_offset = next_offset


class OtherEpoch(Damage):
    """The batch is sound, except for its leader epoch: by the epoch file another epoch reigned over its offset."""


class Place(NamedTuple):
    """A batch's place in a segment."""

    position: int
    base_offset: int
    last_offset: int
    size_bytes: int


class Walk:
    """One walk over a file. `next_offset` is what the batch at `position` begins with, or more; `ceiling` is where the
    file's last one ends.
    """

    __slots__ = ("_begin", "_end", "_file", "_size", "_view", "_window_bytes", "ceiling", "next_offset", "position")

    def __init__(
        self,
        file: File,
        position: int,
        next_offset: int,
        window_bytes: int = WINDOW_BYTES,
        ceiling: int = ANY_OFFSET,
    ) -> None:
        assert window_bytes >= EXTENT_BYTES, f"a window of {window_bytes} bytes holds no batch's extent"
        self.position = position
        self.next_offset = next_offset
        self.ceiling = ceiling
        self._file = file
        self._size = file.size
        self._view = _EMPTY
        self._begin = self._end = position
        self._window_bytes = window_bytes

    def peek(self) -> Place | None:
        """Return the next batch; None at the end of the file. Raises Damage."""
        position, size = self.position, self._size
        if size - position < HEADER_BYTES:
            if position == size:
                return None
            raise self.damage(f"{size - position} bytes are no header")
        if position + EXTENT_BYTES > self._end:
            self._begin, self._end = position, min(position + self._window_bytes, size)
            self._view = self._file.read(position, self._end - position)
        assert self._begin <= position <= self._end - EXTENT_BYTES, (
            f"{self._file.path}: {position} is not in the window"
        )
        try:
            base_offset, last_offset, size_bytes = read_extent(self._view, position - self._begin)
        except ProtocolViolation as problem:
            raise self.damage(str(problem)) from None
        if base_offset < self.next_offset or last_offset >= self.ceiling:
            raise self.damage(f"it spans {base_offset} to {last_offset}")
        if size_bytes > size - position:
            raise self.damage(f"it has {size_bytes} bytes, {size - position} are left")
        return Place(position, base_offset, last_offset, size_bytes)

    def step(self, place: Place) -> None:
        assert place.position == self.position, "a step from somewhere else"
        self.position = place.position + place.size_bytes
        self.next_offset = place.last_offset + 1
        assert self.position <= self._size

    def damage(self, reason: str) -> Damage:
        return Damage(self._file.path, self.position, self.next_offset, reason)


def find(file: File, position: int, offset: int, floor: int, ceiling: int = ANY_OFFSET) -> Place | None:
    """Return the first batch at or behind `position` that ends at or after `offset`; None where the file ends before.

    The batch at `position` begins between `floor` and `ceiling`. Raises Damage.
    """
    return _found_near(file, position, offset, floor, ceiling) or find_by_walk(file, position, offset, floor, ceiling)


def _found_near(file: File, position: int, offset: int, floor: int, ceiling: int) -> Place | None:
    """Find within one window, as for most fetches. None where that is not possible, and a walk has to say why."""
    left = file.size - position
    if left < HEADER_BYTES:
        return None
    view = file.read(position, min(WINDOW_BYTES, left))
    at, end, unpack = 0, len(view) - EXTENT_BYTES, EXTENT.unpack_from
    while at <= end:
        base_offset, length, magic, last_offset_delta = unpack(view, at)
        if magic != MAGIC or length < LENGTH_MIN or not floor <= base_offset <= ceiling or last_offset_delta < 0:
            return None
        size_bytes, last_offset = PREFIX_BYTES + length, base_offset + last_offset_delta
        if at + size_bytes > left:
            return None
        if last_offset >= offset:
            return Place(position + at, base_offset, last_offset, size_bytes)
        at, floor, ceiling = at + size_bytes, last_offset + 1, ANY_OFFSET
    return None


def find_by_walk(file: File, position: int, offset: int, floor: int, ceiling: int) -> Place | None:
    """Find as `find` does, by a walk over headers. Raises Damage."""
    walk = Walk(file, position, floor)
    place = walk.peek()
    if place is not None and place.base_offset > ceiling:
        raise walk.damage(f"its base offset is {place.base_offset}")
    while place is not None and place.last_offset < offset:
        walk.step(place)
        place = walk.peek()
    return place


def whole_until(file: File, position: int, limit: int, floor: int) -> tuple[int, int]:
    """Return where the last whole batch before `limit` ends, and the offset after it. Raises Damage."""
    assert position <= limit, f"{file.path}: a walk from {position} to {limit}"
    walk = Walk(file, position, floor)
    while (place := walk.peek()) is not None:
        if place.position + place.size_bytes > limit:
            return place.position, place.base_offset
        walk.step(place)
    return walk.position, walk.next_offset


def whole_in(view: memoryview, at: int, limit: int, floor: int, room: int) -> tuple[int, int] | None:
    """As `whole_until`, in bytes that are read already, as for most fetches; the file has `room` from the first on.
    None where it is not so plain.
    """
    end, next_offset = len(view) - EXTENT_BYTES, floor
    while at <= end:
        base_offset, length, magic, last_offset_delta = EXTENT.unpack_from(view, at)
        if magic != MAGIC or length < LENGTH_MIN or base_offset < next_offset or last_offset_delta < 0:
            return None
        if at + PREFIX_BYTES + length > limit:
            return (at, base_offset) if at + PREFIX_BYTES + length <= room else None
        at += PREFIX_BYTES + length
        next_offset = base_offset + last_offset_delta + 1
    return None


def end_at(file: File, begun: int, position: int, floor: int) -> int:
    """Return the offset at which the batch before `position` ends, by a walk from `begun`. Raises Damage."""
    walk = Walk(file, begun, floor)
    while walk.position < position and (place := walk.peek()) is not None:
        walk.step(place)
    if walk.position != position:
        raise walk.damage(f"the one behind it begins at {position}")
    return walk.next_offset


def headers(file: File, position: int, window_bytes: int = LONG_WINDOW_BYTES) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch, unchecked. Raises ProtocolViolation where a batch is not whole."""
    size = file.size
    view, begin, end = _EMPTY, position, position
    while position < size:
        if size - position < HEADER_BYTES:
            raise ProtocolViolation(f"{file.path} ends inside the header at {position}")
        if position + HEADER_BYTES > end:
            begin, end = position, min(position + window_bytes, size)
            view = file.read(position, end - position)
        assert begin <= position <= end - HEADER_BYTES, f"{file.path}: {position} is not in {begin} to {end}"
        header = BatchHeader._make(HEADER.unpack_from(view, position - begin))
        size_bytes = PREFIX_BYTES + header.length
        if not HEADER_BYTES <= size_bytes <= size - position:
            raise ProtocolViolation(f"{file.path} ends inside the batch at {position}")
        yield position, header
        position += size_bytes


def resync(file: File, damage: Damage, ceiling: int, bytes_max: int | None = None) -> Place | None:
    """Return the first sound batch behind `damage` that begins at most at `ceiling`. Its CRC is right."""
    size = file.size if bytes_max is None else min(file.size, damage.position + bytes_max)
    at = damage.position + 1
    while at + HEADER_BYTES <= size:
        window = bytes(file.read(at, min(LONG_WINDOW_BYTES, size - at)))
        found = window.find(MAGIC, _MAGIC_AT)
        while found >= 0:
            place = _sound_at(file, at + found - _MAGIC_AT, damage.next_offset, ceiling)
            if place is not None:
                assert place.position > damage.position, f"{file.path}: the way goes back to {place}"
                return place
            found = window.find(MAGIC, found + 1)
        at += max(1, len(window) - _MAGIC_AT)
    return None


def _sound_at(file: File, position: int, floor: int, ceiling: int) -> Place | None:
    if file.size - position < HEADER_BYTES:
        return None
    walk = Walk(file, position, floor, EXTENT_BYTES)
    try:
        place = walk.peek()
    except ProtocolViolation:
        return None
    if place is None or place.base_offset > ceiling:
        return None
    return place if crc_is_valid(file.read(position, place.size_bytes)) else None


def what_is_wrong(header: BatchHeader, batch: memoryview, floor: int, ceiling: int) -> str:
    """Return why this cannot be a batch between these offsets; an empty string where it can."""
    if header.magic != MAGIC:
        return f"its magic is {header.magic}"
    if not crc_is_valid(batch):
        return "it has a wrong CRC"
    if not floor <= header.base_offset <= header.last_offset < ceiling:
        return f"it spans {header.base_offset} to {header.last_offset}, of {floor} to {ceiling - 1}"
    return ""
