"""A metadata log in memory: what of it was synced outlives a crash."""

from dataclasses import dataclass, field

from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.protocol.records.batch import read_header, split_batches
from kavka_broker.protocol.records.control import control_type
from kavka_broker.protocol.records.record import read_records


@dataclass(frozen=True)
class Batch:
    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


@dataclass
class MemoryLog:
    """A log whose tail is lost at a crash, as far as it was not synced."""

    start_offset: int = 0
    synced_offset: int = 0
    batches: list[Batch] = field(default_factory=list)
    pieces: dict[SnapshotId, bytes] = field(default_factory=dict)
    truncations: int = 0
    promised_offset: int = 0

    @property
    def snapshots(self) -> list[SnapshotId]:
        return sorted(self.pieces)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    @property
    def latest_epoch(self) -> int:
        if self.batches:
            return self.batches[-1].epoch
        return self.epoch_end(1 << 31)[0]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        known = [batch for batch in self.batches if batch.epoch <= epoch]
        if known:
            return known[-1].epoch, known[-1].end_offset
        base = [snapshot.epoch for snapshot in self.snapshots if snapshot.end_offset <= self.start_offset]
        return (base[-1] if base else 0), self.start_offset

    def read(self, offset: int, bytes_max: int) -> bytes:
        found = b""
        for batch in self.batches:
            if batch.end_offset > offset and (not found or len(found) + len(batch.data) <= bytes_max):
                found += batch.data
        return found

    def read_snapshot(self, snapshot: SnapshotId, position: int, bytes_max: int) -> tuple[int, bytes] | None:
        data = self.pieces.get(snapshot)
        return None if data is None else (len(data), data[position : position + bytes_max])

    def append(self, data: bytes | bytearray | memoryview) -> None:
        for header, batch in split_batches(data):
            assert header.base_offset == self.end_offset, f"{header.base_offset} does not follow on {self.end_offset}"
            self.batches.append(Batch(header.base_offset, header.next_offset, header.leader_epoch, bytes(batch)))

    def truncate(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.end_offset <= offset]
        self.synced_offset = min(self.synced_offset, self.end_offset)
        self.truncations += 1

    def begin_at(self, snapshot: SnapshotId) -> None:
        self.batches = []
        self.start_offset = self.synced_offset = snapshot.end_offset
        self.truncations += 1

    def trim(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.base_offset >= offset]
        self.start_offset = offset

    def records(self) -> list[tuple[int, int, str]]:
        """Offset, epoch and a name for each record."""
        found = []
        for batch in self.batches:
            for record in read_records(memoryview(batch.data)):
                if read_header(batch.data).is_control:
                    kind = control_type(record.key)
                    name = "?" if kind is None else kind.name.lower().replace("_", "-")
                else:
                    name = bytes(record.value or b"").decode()
                found.append((record.offset, batch.epoch, name))
        return found
