"""What the two indexes of a segment have in common: a file of entries of one size, in ascending order.

The newest entries wait in memory and are written out when a page of them has come together, at a roll, a flush or a
close: one small write for each index entry would double the system calls of an append. Nothing is lost by that: an
index only says where to begin to look, and recovery builds it again from the log.

Kafka preallocates an index and trims it when its segment is done; here the file is always as long as its entries,
which is the trimmed form.
"""

from collections.abc import Iterator
from struct import Struct
from typing import ClassVar, Final

from kavka_broker.storage.disk import Buffer, Disk, File
from kavka_broker.storage.entry_file import EntryFile

PENDING_BYTES_MAX = 4096
#: Most look-ups need so many entries of a large index, around where the one that is looked for should be.
NEAR_ENTRIES: Final = 512


class IndexFile(EntryFile):
    """Entries of two integers each. Both columns ascend; subclasses know what they mean."""

    ENTRY: ClassVar[Struct]
    _file: File

    __slots__ = ("_last", "_stored", "base_offset", "entries_max")

    def __init__(self, disk: Disk, path: str, base_offset: int, bytes_max: int) -> None:
        super().__init__(disk, path, disk.open(path))
        assert base_offset >= 0
        self.base_offset = base_offset
        self.entries_max = bytes_max // self.ENTRY.size
        self._stored = self._file.size // self.ENTRY.size
        self._last: tuple[int, int] | None = None
        if self._stored:
            self._last = self._read(self._stored - 1)
        self._file.release()

    def __len__(self) -> int:
        return self._stored + len(self._pending) // self.ENTRY.size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        with self._lock:
            data = bytes(self._file.read(0, self._stored * self.ENTRY.size)) + bytes(self._pending)
        yield from self.ENTRY.iter_unpack(data)

    @property
    def is_full(self) -> bool:
        return len(self) >= self.entries_max

    @property
    def is_cut(self) -> bool:
        """Whether the file ends inside an entry."""
        return self._file.size != self._stored * self.ENTRY.size

    def _read(self, index: int) -> tuple[int, int]:
        size = self.ENTRY.size
        first, second = self.ENTRY.unpack(self._file.read(index * size, size))
        return first, second

    def _put(self, first: int, second: int) -> None:
        # Of what a disk has held nothing is certain; what waits here this process has made.
        assert not self._pending or self._last is None or (first > self._last[0] and second >= self._last[1]), (
            f"{self.path}: {(first, second)} behind {self._last}"
        )
        self._pending += self.ENTRY.pack(first, second)
        self._last = (first, second)
        if len(self._pending) >= PENDING_BYTES_MAX:
            self._try_spill()

    def _stored_more(self, size_bytes: int) -> None:
        assert size_bytes % self.ENTRY.size == 0, f"{self.path}: {size_bytes} bytes are no entries"
        self._stored += size_bytes // self.ENTRY.size
        assert self._stored * self.ENTRY.size <= self._file.size, f"{self.path} has no {self._stored} entries"

    def _floor(self, column: int, target: int) -> tuple[int, int] | None:
        """Return the last entry whose `column` is not above `target`."""
        if self._last is None:
            return None
        unpack_from, size = self.ENTRY.unpack_from, self.ENTRY.size
        with self._lock:
            data = self._holding(column, target, 1)
            low = self._count_below(data, column, target + 1)
            if not low:
                return None
            first, second = unpack_from(data, (low - 1) * size)
            return first, second

    def _floors(self, column: int, target: int, count: int) -> list[tuple[int, int]]:
        """Return that entry and those before it, `count` in all, the last first. Works on any file."""
        assert count > 0
        unpack_from, size = self.ENTRY.unpack_from, self.ENTRY.size
        with self._lock:
            data = self._holding(column, target, count)
            low = self._count_below(data, column, target + 1)
            return [unpack_from(data, index * size) for index in range(low - 1, max(low - 1 - count, -1), -1)]

    def _holding(self, column: int, target: int, count: int) -> bytearray | memoryview:
        """The entries that wait in memory, if the searched one is there, otherwise those in the file; or those
        near it, if it is there with the ones before it, `count` in all.
        """
        data = self._pending
        if data and self.ENTRY.unpack_from(data, 0)[column] <= target:
            return data
        near = self._near(column, target, count) if self._stored > NEAR_ENTRIES else None
        return self._file.read(0, self._stored * self.ENTRY.size) if near is None else near

    def _near(self, column: int, target: int, count: int) -> memoryview | None:
        """The entries around the place where that of `target` is, if they are spread evenly. None where it is not so:
        a read of the whole index copies it, or brings all its pages in.
        """
        unpack_from, size = self.ENTRY.unpack_from, self.ENTRY.size
        assert 0 < count <= NEAR_ENTRIES < self._stored, f"{self.path}: {count} entries of {self._stored}"
        reach = self._last[column] if self._last is not None else 0
        middle = self._stored * target // reach if reach > 0 else 0
        low = min(max(0, middle - NEAR_ENTRIES // 2), self._stored - NEAR_ENTRIES)
        data = self._file.read(low * size, NEAR_ENTRIES * size)
        begins_below = not low or unpack_from(data, (count - 1) * size)[column] <= target
        ends_above = low + NEAR_ENTRIES == self._stored or unpack_from(data, len(data) - size)[column] > target
        return data if begins_below and ends_above else None

    def _keep_below(self, column: int, limit: int) -> None:
        """Drop the entries whose `column` is `limit` or more. Writes nothing: the disk may be full."""
        size = self.ENTRY.size
        with self._lock:
            waiting = self._count_below(self._pending, column, limit)
            del self._pending[waiting * size :]
            if not waiting:
                kept = self._count_below(self._file.read(0, self._stored * size), column, limit)
                self._file.truncate(kept * size)
                assert kept <= self._stored
                self._stored = kept
                self._last = self._read(kept - 1) if kept else None
            else:
                first, second = self.ENTRY.unpack_from(self._pending, (waiting - 1) * size)
                self._last = (first, second)
        assert self._last is None or self._last[column] < limit, f"{self.path} keeps {self._last}, cut at {limit}"

    def _count_below(self, data: Buffer, column: int, limit: int) -> int:
        """Return how many entries of `data` come before the first whose `column` is `limit` or more."""
        unpack_from, size = self.ENTRY.unpack_from, self.ENTRY.size
        low, high = 0, len(data) // size
        while low < high:
            middle = (low + high) // 2
            if unpack_from(data, middle * size)[column] < limit:
                low = middle + 1
            else:
                high = middle
        assert low * size <= len(data)
        return low

    def clear(self) -> None:
        """Start again, before a rebuild."""
        with self._lock:
            self._pending.clear()
            self._file.truncate(0)
            self._stored = 0
            self._last = None
        assert not len(self)
