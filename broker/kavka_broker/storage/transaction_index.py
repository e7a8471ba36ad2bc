"""The aborted transactions of a segment: the `.txnindex` file.

    version int16 (0), producer id int64, first offset int64, last offset int64, last stable offset int64

An entry stands in the segment that holds its ABORT marker, whose offset is the last one; these ascend, and so do the
last stable offsets. Whoever reads committed records only is told of every aborted transaction in the range that it
reads, and finds them by the last offset: the first entry that reaches the range, and from there on until an entry says
that everything in the range was stable by then.

Most segments have none, so the file is made with the first entry. An entry is written at once; one that the disk
refuses waits in memory for the next try, since its marker is in the log already. A sync or a roll that cannot write
it fails.

**A file that is lost, or ends too early, looks like one of a segment in which nothing was aborted.** So an index that a
start has found is compared with the batches before it counts, once somebody reads committed records of transactions in
its segment (`transaction_proof`).
"""

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from struct import Struct
from typing import Final, NamedTuple

from kavka_broker.storage.disk import Disk, File
from kavka_broker.storage.entry_file import EntryFile

VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")
_LAST_OFFSET: Final = Struct(">18xq8x")
assert ENTRY.size == _LAST_OFFSET.size == 34, "an entry of Kafka's index has 34 bytes"


class Trust(Enum):
    """What is known of an index."""

    WHOLE = auto()  # made from the batches by this process
    FOUND = auto()  # as an earlier process left it
    DOUBTED = auto()  # found, and its segment holds transactions
    INCOMPLETE = auto()  # to be built again


class AbortedTransaction(NamedTuple):
    """One entry."""

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


class TransactionIndex(EntryFile):
    """The entries of one segment; `last_offset` is that of the last one, or -1."""

    __slots__ = ("last_offset", "trust")

    def __init__(self, disk: Disk, path: str) -> None:
        super().__init__(disk, path, disk.open(path) if disk.exists(path) else None)
        self.trust = Trust.WHOLE
        self.last_offset = -1
        if self._file is not None:
            self._find_last(self._file)
            self._file.release()

    def _find_last(self, file: File) -> None:
        count = file.size // ENTRY.size
        self.last_offset = -1
        if count:
            self.last_offset = _LAST_OFFSET.unpack(file.read((count - 1) * ENTRY.size, ENTRY.size))[0]

    def __len__(self) -> int:
        return (self._stored_bytes + len(self._pending)) // ENTRY.size

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return self._from(0)

    @property
    def _stored_bytes(self) -> int:
        return 0 if self._file is None else self._file.size // ENTRY.size * ENTRY.size

    def _bytes(self) -> bytes | memoryview:
        with self._lock:
            stored = b"" if self._file is None else self._file.read(0, self._stored_bytes)
            return bytes(stored) + bytes(self._pending) if self._pending else stored

    def _from(self, offset: int) -> Iterator[AbortedTransaction]:
        """The entries that end at or after `offset`."""
        data = self._bytes()
        low, high = 0, len(data) // ENTRY.size
        while low < high:
            middle = (low + high) // 2
            if _LAST_OFFSET.unpack_from(data, middle * ENTRY.size)[0] < offset:
                low = middle + 1
            else:
                high = middle
        for entry in ENTRY.iter_unpack(data[low * ENTRY.size :]):
            yield AbortedTransaction(*entry[1:])

    def collect(self, offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add those that have records from `offset` up to `end_offset`; whether later segments hold no more of them."""
        for entry in self._from(offset):
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.stable_offset >= end_offset:
                return True
        return False

    # --- writing ------------------------------------------------------------------------------------------------

    def append(self, entry: AbortedTransaction) -> None:
        """Take an entry. One that is there already changes nothing."""
        assert entry.last_offset >= 0, f"{self.path}: {entry}"
        if entry.last_offset <= self.last_offset:
            return
        self.last_offset = entry.last_offset
        self._pending += ENTRY.pack(VERSION, *entry)
        self._try_spill()

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose marker stands at `offset` or behind it."""
        if self.last_offset < offset:
            return
        self.spill()
        assert self._file is not None
        kept = sum(1 for entry in self if entry.last_offset < offset)
        assert kept <= len(self)
        self._file.truncate(kept * ENTRY.size)
        self._find_last(self._file)

    def replace(self, entries: Iterable[AbortedTransaction]) -> None:
        """Replace all entries by these."""
        self.clear()
        for entry in entries:
            self.append(entry)

    def clear(self) -> None:
        """Remove all entries, before a rebuild."""
        with self._lock:
            self._pending.clear()
            self.trust = Trust.WHOLE
            self.last_offset = -1
            if self._file is not None:
                self._file.truncate(0)
        assert not len(self), f"{self.path} has {len(self)} entries still"

    # --- opening --------------------------------------------------------------------------------------------------

    def is_sane(self, base_offset: int, offset_max: int) -> bool:
        """Whether this can be the index of a segment that begins at `base_offset`."""
        if self._file is None:
            return True
        if self._file.size % ENTRY.size:
            return False
        return _ascend(ENTRY.iter_unpack(self._file.read(0, self._file.size)), base_offset, offset_max)


def _ascend(entries: Iterable[tuple[int, ...]], base_offset: int, offset_max: int) -> bool:
    last_before, stable_before = base_offset - 1, 0
    for version, producer_id, first, last, stable in entries:
        is_sound = (
            version == VERSION
            and producer_id >= 0
            and 0 <= first <= last
            and last_before < last <= offset_max
            and stable_before <= stable <= last + 1
        )
        if not is_sound:
            return False
        last_before, stable_before = last, stable
    return True
