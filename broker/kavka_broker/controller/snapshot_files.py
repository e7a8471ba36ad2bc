"""Snapshots of the metadata: `<end offset>-<epoch>.checkpoint` files, in Kafka's form.

A snapshot stands for every record below its end offset. It is a log of its own: a header, the version and voters of the
quorum, records that make an equal image out of an empty one, and a footer, without which it is not whole. It appears
under its name only once it is on the disk.

A follower that is too far behind the leader's log downloads one in pieces, into a `.part` file; it counts only once all
of it was read and found whole.

`bootstrap.checkpoint` is the same in small: what `format` leaves for the first controller to begin with.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from kavka_broker.controller.metadata_batches import control_batch, metadata_batch, read_batch
from kavka_broker.core.metadata.image.features import METADATA_VERSION_LATEST, level_in
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kavka_broker.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.storage.disk import Disk

__all__ = ["BOOTSTRAP", "GENESIS", "SnapshotId", "Snapshots", "build", "file_name", "parse_id", "read"]

BOOTSTRAP: Final = "bootstrap.checkpoint"
RECORDS_PER_BATCH_MAX: Final = 1000
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


PART: Final = ".part"
DAMAGED: Final = ".damaged"

#: The snapshot that `format` writes; it holds only the voters.
GENESIS: Final = SnapshotId(0, 0)


def file_name(snapshot: SnapshotId) -> str:
    """A snapshot's name in its directory."""
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}.checkpoint"


def parse_id(file_name: str) -> SnapshotId | None:
    """The id in a snapshot's name; None for any other file."""
    found = _NAME.fullmatch(file_name)
    return None if found is None else SnapshotId(int(found[1]), int(found[2]))


def build(
    control: Sequence[Message], records: Iterable[Message], *, epoch: int, last_timestamp_ms: int, now_ms: int
) -> bytes:
    """The bytes of a snapshot. `last_timestamp_ms` is the time of its last record."""
    pieces = bytearray()
    head = [SnapshotHeaderRecord(0, last_timestamp_ms), *control]
    pieces += control_batch(head, base_offset=0, leader_epoch=epoch, now_ms=now_ms)
    offset = len(head)
    remaining = iter(records)
    level = METADATA_VERSION_LATEST
    while chunk := list(islice(remaining, RECORDS_PER_BATCH_MAX)):
        level = level_in(chunk, level)  # the first record names it
        pieces += metadata_batch(chunk, base_offset=offset, leader_epoch=epoch, now_ms=now_ms, metadata_version=level)
        offset += len(chunk)
    pieces += control_batch([SnapshotFooterRecord(0)], base_offset=offset, leader_epoch=epoch, now_ms=now_ms)
    return bytes(pieces)


def read(data: bytes) -> Iterator[Message]:
    """The messages between header and footer. Raises ProtocolViolation for an incomplete snapshot."""
    whole = False
    begun = False
    for _, batch in split_batches(memoryview(data)):
        for _, message in read_batch(batch):
            match message:
                case SnapshotHeaderRecord():
                    begun = True
                case SnapshotFooterRecord():
                    whole = True
                case _ if not begun or whole:
                    raise ProtocolViolation("a snapshot has records outside its header and footer")
                case _:
                    yield message
    if not whole:
        raise ProtocolViolation("a snapshot ends without its footer")


class Snapshots:
    """The snapshots in one directory. `ids` are theirs, the oldest first."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        for name in disk.names(directory):
            if name.endswith(PART) and parse_id(name.removesuffix(PART)) is not None:
                disk.remove(f"{directory}/{name}")  # the rest of a download that a crash cut short
        found = map(parse_id, disk.names(directory))
        self.ids = sorted(snapshot for snapshot in found if snapshot is not None)

    def newest(self) -> SnapshotId | None:
        return self.ids[-1] if self.ids else None

    def load(self, snapshot: SnapshotId) -> list[Message]:
        """The records of a snapshot. Raises ProtocolViolation if it is incomplete or has another epoch."""
        data = self._disk.read_file(self.path(snapshot))
        records = list(read(data))
        if any(header.leader_epoch != snapshot.epoch for header, _ in split_batches(data)):
            raise ProtocolViolation("a snapshot of another epoch than its name says")
        return records

    def save(self, snapshot: SnapshotId, data: bytes) -> None:
        """Write and sync a snapshot. Blocks; call `saved` afterwards, on the loop. Raises OSError."""
        self._disk.write_file(self.path(snapshot), data)

    def saved(self, snapshot: SnapshotId) -> None:
        """Add a snapshot that is on the disk, and may be served."""
        self.ids = sorted({*self.ids, snapshot})

    def size_bytes(self, snapshot: SnapshotId) -> int:
        return self._disk.size(self.path(snapshot))

    def age_ms(self, snapshot: SnapshotId, now_ms: int) -> int:
        return now_ms - self._disk.modified_ms(self.path(snapshot))

    def delete(self, snapshot: SnapshotId) -> None:
        self.ids = [other for other in self.ids if other != snapshot]
        self._disk.remove(self.path(snapshot))

    def delete_below(self, offset: int) -> None:
        """Delete those that end below the start of the log: the records between are gone."""
        for older in [snapshot for snapshot in self.ids if snapshot.end_offset < offset]:
            self.delete(older)

    def set_aside(self, snapshot: SnapshotId) -> None:
        """Rename a snapshot that cannot be read, so that it is kept, but not taken for a snapshot."""
        self.ids = [other for other in self.ids if other != snapshot]
        self._disk.rename(self.path(snapshot), self.path(snapshot) + DAMAGED)

    def read_piece(self, snapshot: SnapshotId, position: int, bytes_max: int) -> tuple[int, bytes] | None:
        """A snapshot's size and some of its bytes; None if there is no such snapshot."""
        if snapshot not in self.ids:
            return None
        file = self._disk.open(self.path(snapshot))
        try:
            wanted = min(bytes_max, file.size - position)
            return file.size, bytes(file.read(position, wanted)) if wanted > 0 else b""
        finally:
            file.close()

    # --- download -----------------------------------------------------------------------------------------------

    def save_piece(self, snapshot: SnapshotId, position: int, piece: Buffer) -> None:
        """The next piece of a snapshot that is downloaded; position 0 starts it again."""
        path = self.path(snapshot) + PART
        if not position:
            with suppress(FileNotFoundError):
                self._disk.remove(path)
        file = self._disk.open(path)
        try:
            assert file.size == position, f"{path} has {file.size} bytes, the next piece begins at {position}"
            file.append(piece)
        finally:
            file.close()

    def load_downloaded(self, snapshot: SnapshotId) -> list[Message]:
        """The records of a download. Raises ProtocolViolation if it is incomplete, and deletes it. Blocks."""
        path = self.path(snapshot) + PART
        try:
            return list(read(self._disk.read_file(path)))
        except ProtocolViolation:
            self._disk.remove(path)
            raise

    def name_downloaded(self, snapshot: SnapshotId) -> None:
        """Give a download its name, so that it survives a loss of power. Blocks; call `saved` afterwards."""
        path = self.path(snapshot)
        self._disk.sync_file(path + PART)
        self._disk.rename(path + PART, path)
        self._disk.sync_directory(self._directory)

    def path(self, snapshot: SnapshotId) -> str:
        """The path of a snapshot's file."""
        return f"{self._directory}/{file_name(snapshot)}"
