"""Snapshots of the metadata: `<end offset>-<epoch>.checkpoint` files, in Kafka's form.

A snapshot stands for every record below its end offset. It is a log of its own: a header, the version and voters of the
quorum, records that make an equal image out of an empty one, and a footer, without which it is not whole. It appears
under its name only once it is on the disk.

`bootstrap.checkpoint` is the same in small: what `format` leaves for the first controller to begin with.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from kavka_broker.controller.batches import control_batch, metadata_batch, read_batch
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kavka_broker.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.storage.disk import Disk

BOOTSTRAP: Final = "bootstrap.checkpoint"
RECORDS_PER_BATCH_MAX: Final = 1000
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """The first offset that is not in the snapshot, and the epoch of the last that is."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


#: Written by `format`: nothing but who votes.
GENESIS: Final = SnapshotId(0, 0)


def parse_id(file_name: str) -> SnapshotId | None:
    """The id in a snapshot's name; None for any other file."""
    found = _NAME.fullmatch(file_name)
    return None if found is None else SnapshotId(int(found[1]), int(found[2]))


def build(
    control: Sequence[Message], records: Iterable[Message], *, epoch: int, last_timestamp_ms: int, now_ms: int
) -> bytes:
    """The bytes of a snapshot. `last_timestamp_ms` is that of the last record it stands for."""
    pieces = bytearray()
    head = [SnapshotHeaderRecord(0, last_timestamp_ms), *control]
    pieces += control_batch(head, base_offset=0, leader_epoch=epoch, now_ms=now_ms)
    offset = len(head)
    remaining = iter(records)
    while chunk := list(islice(remaining, RECORDS_PER_BATCH_MAX)):
        pieces += metadata_batch(chunk, base_offset=offset, leader_epoch=epoch, now_ms=now_ms)
        offset += len(chunk)
    pieces += control_batch([SnapshotFooterRecord(0)], base_offset=offset, leader_epoch=epoch, now_ms=now_ms)
    return bytes(pieces)


def read(data: bytes) -> Iterator[Message]:
    """The messages between header and footer. Raises ProtocolViolation where the snapshot is not whole."""
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
    """The snapshots in one directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory

    def ids(self) -> list[SnapshotId]:
        """The oldest first."""
        found = map(parse_id, self._disk.names(self._directory))
        return sorted(snapshot for snapshot in found if snapshot is not None)

    def newest(self) -> SnapshotId | None:
        return max(self.ids(), default=None)

    def load(self, snapshot: SnapshotId) -> list[Message]:
        return list(read(self._disk.read_file(self._path(snapshot))))

    def save(self, snapshot: SnapshotId, data: bytes) -> None:
        """Blocks until the snapshot would survive a loss of power."""
        self._disk.write_file(self._path(snapshot), data)

    def size_bytes(self, snapshot: SnapshotId) -> int:
        return self._disk.size(self._path(snapshot))

    def age_ms(self, snapshot: SnapshotId, now_ms: int) -> int:
        return now_ms - self._disk.modified_ms(self._path(snapshot))

    def delete(self, snapshot: SnapshotId) -> None:
        self._disk.remove(self._path(snapshot))

    def _path(self, snapshot: SnapshotId) -> str:
        return f"{self._directory}/{snapshot.file_name}"
