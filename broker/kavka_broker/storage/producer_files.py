"""What the files of a log say of its producers: the snapshots, and the batches behind the newest one.

A snapshot is written where a segment begins and where the log is closed. Every other state is worked out from there, at
a start and after a cut. A transaction that was aborted goes into the index of the segment that holds its marker.
"""

from collections.abc import Sequence

from kavka_broker.core.partition.producer_state import Producer, ProducerStates
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage.log_state import LogState
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.producer_walk import ProducerWalk, entry_of, note_batch
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segment_fingerprint import fingerprint_of
from kavka_broker.storage.segments import Segments
from kavka_broker.storage.snapshot_check import are_borne_out
from kavka_broker.storage.transaction_index import Trust


class ProducerFiles:
    """Keeps `states` and the files of one log in step."""

    __slots__ = ("_segments", "_snapshot_offset", "_state", "_walk", "snapshots", "states")

    def __init__(self, state: LogState, segments: Segments, snapshots: ProducerSnapshots) -> None:
        self._state = state
        self._segments = segments
        self._snapshot_offset = 0  # of the snapshot that `states` began with
        self._walk: ProducerWalk | None = None  # as of the end that a cut has left; `states` are older
        self.snapshots = snapshots
        self.states = ProducerStates()

    def load(self, snapshot_offsets: Sequence[int] | None = None) -> None:
        """Work out the producers' state, as the log is opened: the newest snapshot, and the batches behind it.
        `snapshot_offsets` says which there are, ascending, where they have just been listed. Blocks.

        A transaction index that has to be built again needs the state at the start of its segment, and all from there.
        """
        assert self._walk is None, f"{self._state.name} is being cut"
        walk = self._begun(snapshot_offsets)
        self.states, self._snapshot_offset = walk.take(self.states.producers_max), walk.offset
        for segment in self._segments:
            if segment.aborted.trust is Trust.INCOMPLETE:
                segment.aborted.trust = Trust.WHOLE
        self._segments.look_at_indexes()

    @property
    def are_known(self) -> bool:
        """Whether the states are those at the log's end. Until a cut is sealed they are those of before it."""
        return self._walk is None

    def begin_walk(self) -> None:
        """The log was cut: the producers as of its end are to be worked out (`walked`). Raises OSError."""
        self._walk = self._begun()

    def doubt_transactions(self, high_watermark: int) -> None:
        """Let `states` call no transaction stable that a cut may have opened again. `high_watermark` is that of before
        the cut. A transaction is forgotten once its marker is replicated, and none of before the snapshot is known: a
        cut above both opens only transactions that `states` still have.
        """
        assert self._walk is not None, f"{self._state.name} was not cut"
        if self._state.end_offset < max(high_watermark, self._snapshot_offset):
            self.states.transactions.doubt_from(self._walk.doubtful_offset)

    def walked(self) -> ProducerStates:
        """The producers as of the end that the cut has left. Blocks, beside the loop. Raises OSError."""
        return self.states if self._walk is None else self._walk.take_in_thread(self.states.producers_max)

    def end_walk(self, states: ProducerStates) -> None:
        """These are the producers from now on."""
        if self._walk is not None:
            self._snapshot_offset = self._walk.offset
        self.states, self._walk = states, None

    def _begun(self, snapshot_offsets: Sequence[int] | None = None) -> ProducerWalk:
        segments, end_offset = self._segments, self._state.end_offset
        unindexed = (segment.base_offset for segment in segments if segment.aborted.trust is Trust.INCOMPLETE)
        at_most = min(unindexed, default=end_offset)
        known = self.snapshots.load(at_most, end_offset, self.bears_out, snapshot_offsets)
        # Without a snapshot the batch in which the log begins counts too.
        offset = self.snapshots.newest if self.snapshots.newest >= 0 else self._state.start_offset
        assert offset <= end_offset, f"{self._state.name} ends at {end_offset}, its producers are those of {offset}"
        return ProducerWalk(known, offset, segments.from_offset(offset))

    def bears_out(self, offset: int, producers: list[tuple[int, Producer]]) -> bool:
        """Whether the batches agree that these are the producers before `offset`, as far as the last ones tell."""
        return are_borne_out(self._segments, offset, producers, self._state.start_offset)

    def note(self, header: BatchHeader, batch: memoryview, segment: Segment) -> None:
        """Keep the producers' state up with a batch that is in `segment`, without judging it."""
        assert header.base_offset < self._state.end_offset, f"{self._state.name} has no {header.base_offset} yet"
        ended = note_batch(self.states, header, batch)
        if ended is not None and ended.is_aborted:
            segment.aborted.append(entry_of(ended))
            self._segments.has_aborted = True

    # --- snapshots ----------------------------------------------------------------------------------------------

    @property
    def lacks_snapshot(self) -> bool:
        """Whether a start would have to read batches."""
        return self._state.end_offset > max(self.snapshots.newest, 0)

    def write_snapshot(self, offset: int, *, durable: bool) -> str:
        """Write down the producers as they are before `offset`; returns the file's path. Raises OSError."""
        # A segment of a follower may begin behind the end: its leader has nothing in between.
        end_offset = max(self._state.end_offset, self._segments.active_base)
        assert 0 <= offset <= end_offset, f"{self._state.name} ends at {end_offset}: a snapshot of {offset}"
        fingerprint = fingerprint_of(self._segments.from_offset(offset - 1)[0], offset)
        return self.snapshots.write(offset, self.states, fingerprint, durable=durable)

    def finish(self) -> None:
        """The log is closed: its end has a snapshot, which is synced. Raises OSError."""
        if self.lacks_snapshot:
            self.write_snapshot(self._state.end_offset, durable=True)
        assert not self.lacks_snapshot
        if self.snapshots.are_there:
            self._drop_strays()

    def _drop_strays(self) -> None:
        """Keep those that stand before a segment, and the newest."""
        kept = {max(self.snapshots.offsets(), default=0), *(segment.base_offset for segment in self._segments)}
        self.snapshots.drop(lambda at: at not in kept)
