"""What the quorum's rules ask of the world around them.

The rules themselves touch neither disk nor network. Each call of `RaftNode` returns effects, and the contract is:

    run them one after the other, in their order; none of a later call before all of an earlier one;
    give the node its next event only when the log has all `Append`, `AppendFetched` and `Truncate` of this one;
    an answer (what a request handler returned, or a `Respond`) leaves only after every effect before it.

`Persist` blocks what follows it until the state would survive a loss of power: this is what makes a vote a promise.
Appends need no such wait. They are written, `Flush` starts a sync beside everything else, and `flushed` tells the
node; until then no node counts records that are not on a disk.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.protocol.message import Buffer, Message


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """The address for a request. Ids below -1 are bootstrap servers, whose node ids are not known yet."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Later:
    """A request that is answered by the effect `Respond` of the same number."""

    number: int


@dataclass(frozen=True, slots=True)
class Persist:
    """Write the quorum state and sync it, before anything behind it happens."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request to a peer; `RaftNode.answered(send, response or None, now_ms)` takes the outcome."""

    peer: NodeAddress
    request: Message


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer a request that had to wait."""

    later: Later
    response: Message


@dataclass(frozen=True, slots=True)
class Append:
    """Append one batch of control records at the log's end, in this epoch, as the leader."""

    records: tuple[Message, ...]
    epoch: int

    def __post_init__(self) -> None:
        assert self.records, "a batch has records"
        assert self.epoch >= 1, self.epoch


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Append whole batches as the leader wrote them, as a follower. Checksums and offsets are as they should be."""

    records: Buffer
    end_offset: int

    def __post_init__(self) -> None:
        assert len(self.records) >= 1, "a follower appends whole batches"
        assert self.end_offset >= 1, self.end_offset


@dataclass(frozen=True, slots=True)
class Truncate:
    """Drop all records from this offset on. Never below the high watermark."""

    offset: int

    def __post_init__(self) -> None:
        assert self.offset >= 0, self.offset


@dataclass(frozen=True, slots=True)
class Flush:
    """Sync the log up to where it ends now, in the background; then call `flushed`."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Take note that records below this offset are committed and stay so. Only grows while the process lives."""

    high_watermark: int

    def __post_init__(self) -> None:
        assert self.high_watermark >= 1, self.high_watermark


@dataclass(frozen=True, slots=True)
class Led:
    """The node leads. Its epoch begins with the batch at `start_offset`; once that is committed, all before it is."""

    epoch: int
    start_offset: int

    def __post_init__(self) -> None:
        assert self.epoch >= 1, self.epoch
        assert self.start_offset >= 0, self.start_offset


@dataclass(frozen=True, slots=True)
class Followed:
    """Another node leads, or none that is known (leader_id -1). A leader that gets this leads no longer."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class SaveChunk:
    """Save a piece of the snapshot that is being downloaded; position 0 begins it again."""

    snapshot: SnapshotId
    position: int
    records: Buffer

    def __post_init__(self) -> None:
        assert self.position >= 0, self.position
        assert len(self.records) >= 1, "a piece has bytes"


@dataclass(frozen=True, slots=True)
class AdoptSnapshot:
    """Adopt the downloaded snapshot: sync it, check it, name it, begin the log behind it, replace the image by it.

    Then call `snapshot_adopted`, or `snapshot_refused` where it is damaged. Until then the node fetches nothing.
    """

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the log of this process, named like an event."""

    event: str
    fields: dict[str, object] = field(default_factory=dict)
    is_warning: bool = False


Effect: TypeAlias = (
    Persist
    | Send
    | Respond
    | Append
    | AppendFetched
    | Truncate
    | Flush
    | Committed
    | Led
    | Followed
    | SaveChunk
    | AdoptSnapshot
    | Note
)
