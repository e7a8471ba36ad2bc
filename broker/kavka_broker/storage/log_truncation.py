"""Cutting a log off at its end, as a follower that has what its leader has not, and beginning it again.

What has to be synced before and after is in `durability`; here is what changes files and what is known in memory.
"""

from errno import ENOSPC

from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.storage.durability import Durability
from kavka_broker.storage.epoch_file import EpochFile
from kavka_broker.storage.log_state import LogState
from kavka_broker.storage.producer_files import ProducerFiles
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segments import Segments

log = get("storage")


class Truncation:
    """The cut of one log: `plan_cut` or `plan_start`, and `carry_out` once that may be."""

    __slots__ = ("_durability", "_epoch_file", "_producer_files", "_segments", "_state")

    def __init__(
        self,
        state: LogState,
        segments: Segments,
        epoch_file: EpochFile,
        producer_files: ProducerFiles,
        durability: Durability,
    ) -> None:
        self._state = state
        self._segments = segments
        self._epoch_file = epoch_file
        self._producer_files = producer_files
        self._durability = durability

    def truncate_to(self, offset: int) -> bool:
        """Cut off the batch that holds `offset`, and all that follow; returns whether there was any. Blocks."""
        self.plan_cut(offset)
        return self._cut_at_once()

    def start_at(self, offset: int) -> None:
        """Forget everything and go on at `offset`. Blocks."""
        self._durability.secure()
        self.plan_start(offset)
        self._cut_at_once()
        assert self._state.start_offset == self._state.end_offset == offset

    def _cut_at_once(self) -> bool:
        durability = self._durability
        is_cut = durability.planned is not None
        try:
            durability.lower_on_disk()
            if is_cut:
                self.carry_out()
        finally:
            durability.give_up_cut()
        durability.seal()
        assert durability.planned is None
        return is_cut

    def plan_cut(self, offset: int) -> None:
        """Plan to cut off the batch that holds `offset`, and all that follow, as a follower does with its leader's end.

        Plans nothing where there is nothing to cut. Raises KAFKA_STORAGE_ERROR, on a full disk too.
        """
        if offset >= self._state.end_offset:
            # An epoch without records may begin at the end, of which the leader has never heard.
            self._epoch_file.truncate_from_end(offset)
        elif offset < self._segments.first_base:
            self.plan_start(offset)
        else:
            self._durability.plan(self._segments.from_offset(offset)[0].end_below(offset))

    def plan_start(self, offset: int) -> None:
        """Everything is to go, as of a follower far behind its leader's start, which goes on at `offset`. Raises
        KAFKA_STORAGE_ERROR.
        """
        self._durability.plan(min(offset, self._segments.first_base), offset)

    def carry_out(self) -> None:
        """Cut as planned, once that may be (`Durability.may_be_cut`); until it is sealed the log takes no records.
        Raises KAFKA_STORAGE_ERROR; what is on the disk is not known then. Raises CORRUPT_MESSAGE where the disk has
        changed what is to stay; the cut stays planned.
        """
        state, planned = self._state, self._durability.planned
        assert planned is not None, f"{state.name} is to be cut, and nobody has said where"
        assert self._durability.may_be_cut, f"{state.name} promises on the disk what is to be cut"
        state.note_changed()
        try:
            if planned.begins_at < 0:
                self._cut_off(planned.offset)
            else:
                self._begin_anew(planned.begins_at)
            self._producer_files.begin_walk()
        except OSError as problem:
            state.fail()
            raise state.storage_error("truncate", problem) from problem
        except ProtocolViolation as problem:
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{state.name}: {problem}") from problem
        assert state.start_offset <= state.end_offset
        self._durability.note_cut()
        self._segments.look_at_indexes()

    def _cut_off(self, offset: int) -> None:
        state = self._state
        log.info("log.truncated", log=str(state.name), from_offset=state.end_offset, to_offset=offset)
        state.end_offset = self._segments.keep_below(offset)
        # The log's start may have stood in the middle of the batch that goes.
        state.start_offset = min(state.start_offset, state.end_offset)
        self._epoch_file.epochs.truncate_from_end(state.end_offset)
        self._producer_files.snapshots.drop(lambda at: at > state.end_offset)

    def _begin_anew(self, offset: int) -> None:
        state, segments = self._state, self._segments
        log.info("log.restarted", log=str(state.name), from_offset=state.end_offset, to_offset=offset)
        segments.discard(reversed(segments.all))
        self._epoch_file.epochs.clear()
        segments.replace([self._first(offset, segments.active.created_ms)])
        assert (len(segments), segments.first_base) == (1, offset)
        self._producer_files.snapshots.drop(lambda at: True)
        state.start_offset = state.end_offset = offset

    def _first(self, offset: int, created_ms: int) -> Segment:
        try:
            return self._segments.make(offset, created_ms)
        except OSError as problem:
            if problem.errno != ENOSPC:
                raise
            self._segments.discarded.remove()  # frees enough room for the new files
            return self._segments.make(offset, created_ms)
