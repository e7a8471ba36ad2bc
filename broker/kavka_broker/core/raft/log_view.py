"""What the rules must know of the metadata log, and how a leader judges where a follower stands in it.

A follower says with each fetch how far it has come and of which epoch its last record is. If the leader's log agrees,
it sends what follows. If not, it tells the end of the largest epoch they may share, the follower cuts its log there
and asks again: logs are reconciled by epoch, never by a high watermark. A follower that is behind the beginning of
the leader's log is sent the newest snapshot instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from kavka_broker.protocol.message import Buffer


class SnapshotId(NamedTuple):
    """A snapshot by the offset behind its last record, and the epoch of that record."""

    end_offset: int
    epoch: int


class LogView(Protocol):
    """The metadata log as it is on this node right now. The rules only read it; their effects write it."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def synced_offset(self) -> int:
        """The offset up to which the log is synced. A truncation lowers it; a sync that it overtook does not count."""

    @property
    def promised_offset(self) -> int:
        """The offset up to which other nodes count on this log. If the log ends below it, the disk has lost records."""

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last record (of the snapshot where the log is empty); 0 where there never was one."""

    @property
    def snapshots(self) -> Sequence[SnapshotId]:
        """Snapshots that can be read, the oldest first."""

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest epoch of the log that is not above `epoch`, and the offset behind its last record.

        Where `epoch` is older than all of the log: that of the snapshot it begins behind (or 0), and the log's start.
        """

    def read(self, offset: int, bytes_max: int) -> Buffer:
        """Whole batches from the one that holds `offset`; at least one if there is any. Empty at the end."""

    def read_snapshot(self, snapshot: SnapshotId, position: int, bytes_max: int) -> tuple[int, Buffer] | None:
        """The size of a snapshot and bytes of it, or None where there is no such snapshot."""


@dataclass(frozen=True, slots=True)
class Agrees:
    """The follower's log is a beginning of the leader's."""


@dataclass(frozen=True, slots=True)
class Diverges:
    """The follower has to cut its log at the end of this epoch, or at its own end of it if that is lower."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class TooOld:
    """The leader's log begins behind the follower's end."""

    snapshot: SnapshotId


Standing: TypeAlias = Agrees | Diverges | TooOld


def standing(log: LogView, offset: int, epoch: int) -> Standing:
    """Compare a follower's log, which ends at `offset` with a record of `epoch`, with this one."""
    assert offset >= 0, offset
    assert log.start_offset <= log.end_offset, f"a log from {log.start_offset} to {log.end_offset}"
    if offset == 0 and log.start_offset == 0:
        return Agrees()
    if log.snapshots:
        # The snapshot that the log begins behind is the newest of these; older ones may still be there.
        base = next((kept for kept in reversed(log.snapshots) if kept.end_offset <= log.start_offset), None)
        if base is not None and (offset, epoch) == (log.start_offset, base.epoch):
            return Agrees()
        if offset <= log.start_offset or (base is not None and epoch < base.epoch):
            return TooOld(log.snapshots[-1])
    known_epoch, end_offset = log.epoch_end(epoch)
    assert known_epoch <= epoch, f"epoch {known_epoch} was asked for as {epoch}"
    assert end_offset <= log.end_offset, f"epoch {known_epoch} ends at {end_offset}, the log at {log.end_offset}"
    if known_epoch != epoch or end_offset < offset:
        return Diverges(known_epoch, end_offset)
    return Agrees()
