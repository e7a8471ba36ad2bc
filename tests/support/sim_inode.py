"""What a simulated disk is made of: files and directories, as processes see them and as a loss of power leaves them."""

from random import Random
from typing import Final, Union

SECTOR_BYTES: Final = 512

Entry = Union["SimInode", "SimDirectory", "SimLink"]


class SimInode:
    """The bytes of one file: as they are, and as they would be after a crash."""

    __slots__ = (
        "cuts",
        "data",
        "durable",
        "failed_reads",
        "forgotten",
        "is_lied_about",
        "is_unreadable",
        "lost",
        "modified_ms",
        "room",
    )

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.durable = b""
        # From where to where bytes are that the system believes to have written and has not: see `drop`.
        self.lost: list[tuple[int, int]] = []
        self.is_lied_about = False  # the last sync has done nothing
        self.is_unreadable = False  # sectors have failed: each read says so
        self.failed_reads = 0
        self.cuts = 0  # how often bytes that were there went, or may have
        # By position: the byte as it was written, where the medium has another one now.
        self.forgotten: dict[int, int] = {}
        self.modified_ms = modified_ms
        self.room = 0  # bytes behind the end that were made ready: zeros, for who does not know how long the file is

    def leave_room(self) -> None:
        """Nobody knows any more that what was made ready is no part of the file."""
        self.data += bytes(self.room)
        self.room = 0

    def sync(self) -> None:
        self.durable = self._written()
        self.is_lied_about = False

    def drop(self) -> None:
        """A write-back has failed: what was not synced stays readable and counts as clean, and no sync writes it."""
        if len(self.data) > len(self.durable):
            self.lost.append((len(self.durable), len(self.data)))

    def truncate(self, size: int) -> None:
        self.room = 0
        if size >= len(self.data):
            return
        del self.data[size:]
        self._was_cut(size)
        self.lost = [(start, min(end, size)) for start, end in self.lost if start < size]

    def forget(self, position: int, byte: int) -> None:
        """The medium has this byte now, in the place of the one that was written."""
        if self.data[position] != byte:
            self.forgotten.setdefault(position, self.data[position])
        self.data[position] = byte
        if position < len(self.durable):
            self.durable = self.durable[:position] + bytes([byte]) + self.durable[position + 1 :]

    def _was_cut(self, size: int) -> None:
        self.cuts += 1
        self.forgotten = {position: byte for position, byte in self.forgotten.items() if position < size}

    def _written(self) -> bytes:
        """The bytes as a sync writes them."""
        if not self.lost:
            return bytes(self.data)
        written = bytearray(self.data)
        for start, end in self.lost:
            written[start:end] = bytes(end - start)
        return bytes(written)

    def settle(self, random: Random) -> None:
        """Power is lost: decide what of the unsynced bytes is there."""
        self.leave_room()
        if self.lost or self.is_lied_about:
            self._miss()
            return
        size = random.choice((len(self.durable), len(self.data), self._between(random)))
        settled = bytearray(self.durable[:size].ljust(size, b"\0"))
        written = self._written()
        for start in range(0, size, SECTOR_BYTES):
            sector = written[start : min(start + SECTOR_BYTES, size)]
            if random.random() < 0.7:
                settled[start : start + len(sector)] = sector
        self.data, self.durable = settled, bytes(settled)
        self._was_cut(size)

    def _miss(self) -> None:
        """What a sync has said to be safe and is not reads as zeros."""
        missing = [*self.lost, (len(self.durable), len(self.data))] if self.is_lied_about else self.lost
        for start, end in missing:
            for position in range(start, end):
                self.forget(position, 0)
        self.durable, self.lost, self.is_lied_about = bytes(self.data), [], False

    def _between(self, random: Random) -> int:
        return random.randint(*sorted((len(self.durable), len(self.data))))


class SimDirectory:
    """Names, and those of them that would be there after a crash."""

    __slots__ = ("durable", "is_lied_about", "names")

    def __init__(self) -> None:
        self.names: dict[str, Entry] = {}
        self.durable: dict[str, Entry] = {}
        self.is_lied_about = False  # the last sync has done nothing


class SimLink:
    """A symbolic link, to a path from the root."""

    __slots__ = ("target",)

    def __init__(self, target: str) -> None:
        self.target = target


#: Of one directory one name, and what it stands for from now on; None: it is gone.
Change = tuple[SimDirectory, str, Entry | None]


class Journal:
    """Changes of names that a file system has not written yet, in their order: each is one, or two for a rename."""

    def __init__(self) -> None:
        self._entries: list[tuple[Change, ...]] = []

    def add(self, *changes: Change) -> None:
        """Make the changes, and keep them in mind."""
        for directory, name, entry in changes:
            _put(directory.names, name, entry)
        self._entries.append(changes)

    def write(self, only: SimDirectory | None = None) -> None:
        """Make all of them durable; with `only`, those of that directory."""
        entries, self._entries = self._entries, []
        if only is not None:
            self._entries = [entry for entry in entries if not _is_of(entry, only)]
            entries = [entry for entry in entries if _is_of(entry, only)]
        self._write(entries)

    def settle(self, random: Random, *, by_directory: bool) -> None:
        """Power is lost: of all changes, or of those of each directory, a first part is there."""
        if not by_directory:
            self._write(self._entries[: random.randrange(len(self._entries) + 1)])
        else:
            for place in dict.fromkeys(entry[0][0] for entry in self._entries):
                of_one = [entry for entry in self._entries if entry[0][0] is place]
                self._write(of_one[: random.randrange(len(of_one) + 1)])
        self._entries = []

    def _write(self, entries: list[tuple[Change, ...]]) -> None:
        for changes in entries:
            for directory, name, entry in changes:
                _put(directory.durable, name, entry)


def _is_of(entry: tuple[Change, ...], directory: SimDirectory) -> bool:
    return entry[0][0] is directory or entry[-1][0] is directory


def _put(names: dict[str, Entry], name: str, entry: Entry | None) -> None:
    if entry is None:
        names.pop(name, None)
    else:
        names[name] = entry
