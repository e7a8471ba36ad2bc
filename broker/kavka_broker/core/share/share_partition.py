"""The records of one partition that a share group has in flight, as the partition's leader keeps them (KIP-932).

    start_offset (SPSO)                                    end_offset
        |  acquired by m1  | available | acknowledged | acquired by m2 |  never fetched ...

Runs of offsets tile the window between the two: each offset is in exactly one run, so a record is never acquired twice
at once. A fetch acquires what is available in the window, and then what lies behind it. The start moves over records
that are acknowledged or archived.

An acknowledgement is a change in two phases: `begin` marks the runs, the shell writes the change to the share
coordinator, and `commit` takes it over or `roll_back` gives the records back to their member. Meanwhile nothing else
happens to them: no fetch acquires them and no lock expires.

Records that are never to be delivered are archived: those that are rejected, that were delivered too often, that the
log has lost or that belong to aborted transactions.
"""

from collections.abc import Collection, Generator, Iterable, Sequence
from enum import IntEnum
from itertools import islice
from typing import Final, NamedTuple

from kavka_broker.core.share.share_window import NOBODY, Change, OffsetRun, ShareWindow
from kavka_broker.core.share.state_batches import RecordState, StateBatch
from kavka_broker.protocol.errors import BrokerError, ErrorCode

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = RecordState

THROTTLED_DELIVERIES_MIN: Final = 2
"""Records that were delivered fewer times are always delivered together."""
SPAN_COST: Final = 15
"""The cost of marking a range of one type, in the units of `loop.slices`."""
RESTORED_PER_STEP: Final = 200
"""States of one step of restoring a window, about a microsecond each."""
SPAN_MAX: Final = 500
"""Offsets that are marked in one step."""
KNOWN_TYPES: Final = frozenset(range(5))
TYPES_MAX: Final = 10_000
"""Types of one range: as many as `group.share.max.partition.max.record.locks` can be at most."""
EXPIRED_PER_STEP_MAX: Final = 2_000
"""Runs whose locks end in one step: a few milliseconds."""
ACQUIRED_PER_STEP_MAX: Final = 2_000
"""Records beyond which a fetch acquires no further batch of one partition, whatever it asks for."""


class AcknowledgeType(IntEnum):
    """What a member says of a record, with Kafka's numbers."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class ShareLimits(NamedTuple):
    """The settings of a group: records in flight, deliveries of one record, the time to acknowledge it, and whether
    that may be renewed.
    """

    records_max: int
    deliveries_max: int
    lock_ms: int
    may_renew: bool = True

    @property
    def throttled_from(self) -> int:
        """The number of deliveries after which records are delivered in smaller and smaller parts."""
        return max(THROTTLED_DELIVERIES_MIN, -(-self.deliveries_max // 2))

    def deliverable(self, run: OffsetRun) -> int:
        """Return how many records of a throttled run are delivered together: half as many each time, at last one."""
        if run.count >= self.deliveries_max - 1:
            return 1
        return max(1, run.span >> (run.count - self.throttled_from + 1))


class Acquired(NamedTuple):
    """Records that a member has acquired."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """What a member says of the offsets from first to last: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class LogBatch(NamedTuple):
    """A batch of the log; one that `is_hidden` is delivered to nobody: it is of an aborted transaction."""

    first_offset: int
    last_offset: int
    is_hidden: bool = False


class Acquisition:
    """What a member wants to acquire: up to `room` records, and not one more where that `is_strict`. `throttled` is the
    first run of records that were delivered often: only those like it are acquired beside it.
    """

    __slots__ = ("deadline_ms", "is_strict", "limits", "member", "room", "runs", "throttled")

    def __init__(
        self, member: str, records_max: int, limits: ShareLimits, now_ms: float, *, is_strict: bool = False
    ) -> None:
        self.member = member
        self.limits = limits
        self.deadline_ms = now_ms + limits.lock_ms
        self.is_strict = is_strict
        self.room = min(records_max, limits.records_max, ACQUIRED_PER_STEP_MAX)
        self.runs: list[OffsetRun] = []
        self.throttled: OffsetRun | None = None

    def throttle(self, run: OffsetRun) -> bool:
        """Begin with records that were delivered often, or go on with more of them. Returns whether the run is one of
        theirs.
        """
        if self.throttled is not None:
            return run.count == self.throttled.count - 1 and run.span == self.throttled.span
        if self.runs:
            return False
        self.throttled, self.is_strict = run, True
        self.room = min(self.room, self.limits.deliverable(run))
        return True

    def lock(self, run: OffsetRun) -> None:
        """Acquire a run."""
        assert run.is_free, run
        run.state, run.member, run.count, run.deadline_ms = ACQUIRED, self.member, run.count + 1, self.deadline_ms
        self.room -= run.size
        self.runs.append(run)


class SharePartition:
    """The window of a share partition. `state_epoch` is that of the share coordinator."""

    def __init__(self, state_epoch: int, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        self.state_epoch = state_epoch
        self.log_start_offset = -1  # not known yet
        self._window = ShareWindow(start_offset)
        for batch in batches:
            self._window.restore(batch)
        self._window.advance()

    @classmethod
    def restored(
        cls, state_epoch: int, start_offset: int, batches: Iterable[StateBatch]
    ) -> Generator[int, None, "SharePartition"]:
        """Return the window with states that were written down; yields the cost of each step."""
        partition, left = cls(state_epoch, start_offset), iter(batches)
        while part := list(islice(left, RESTORED_PER_STEP)):
            for batch in part:
                partition._window.restore(batch)
            yield RESTORED_PER_STEP
        partition._window.advance()
        return partition

    # --- what is known ------------------------------------------------------------------------------------------

    @property
    def runs(self) -> Sequence[OffsetRun]:
        """The runs, in the order of their offsets."""
        return self._window.runs

    @property
    def start_offset(self) -> int:
        """The first offset that the group has not done with."""
        return self._window.start_offset

    @property
    def end_offset(self) -> int:
        """The offset behind the last record in flight."""
        return self._window.end_offset

    @property
    def in_flight(self) -> int:
        """The number of offsets in the window."""
        return self.end_offset - self.start_offset

    @property
    def next_fetch_offset(self) -> int:
        """The first offset that a fetch may acquire."""
        return next((run.first for run in self._window.runs if run.is_free), self.end_offset)

    def may_acquire(self, limits: ShareLimits) -> bool:
        """Whether a fetch may find something: available records, or room for new ones."""
        return self.next_fetch_offset < self.end_offset or self.has_room(limits)

    def has_room(self, limits: ShareLimits) -> bool:
        """Whether a fetch may acquire records that were never acquired."""
        return self.in_flight < limits.records_max

    @property
    def is_idle(self) -> bool:
        """Whether no record is acquired, and none is being written down."""
        return not any(run.state is ACQUIRED or run.pending is not None for run in self._window.runs)

    @property
    def next_deadline_ms(self) -> float | None:
        """The time when the next lock ends; None where no record is acquired."""
        locked = (run.deadline_ms for run in self._window.runs if run.state is ACQUIRED and run.pending is None)
        return min(locked, default=None)

    def outcome_of(self, changes: Iterable["Change"]) -> tuple[int, int]:
        """Return the start of the window once these changes are committed, and the number of offsets behind it that
        are never delivered again then.
        """
        start_offset, complete, among = self.start_offset, 0, frozenset(changes)
        for run in self._window.runs:
            state, pending = run.state, run.pending
            if pending is None:
                ends = state is ACKNOWLEDGED or state is ARCHIVED
            else:
                ends = (pending is ACKNOWLEDGED or pending is ARCHIVED) and run.change in among
            if ends:
                complete += run.last - run.first + 1
                if run.first == start_offset:
                    start_offset = run.last + 1
                    complete = 0
        return start_offset, complete

    # --- fetches ------------------------------------------------------------------------------------------------

    def acquire(self, wanted: Acquisition, offset: int, batches: Iterable[LogBatch]) -> list[Acquired]:
        """Acquire records of the batches that the log has from `offset` on, in their order. Offsets between them were
        compacted away, and are archived.

        Whole batches are acquired until there are as many records as are wanted. Records that were delivered often are
        acquired in smaller and smaller parts, without others beside them.
        """
        for first, last, is_hidden in batches:
            if offset < first:
                self._archive(offset, first - 1)
            offset = max(offset, last + 1)
            if is_hidden:
                self._archive(first, last)
            elif wanted.room <= 0 or not self._acquire_batch(wanted, first, last):
                break
        parts = [Acquired(run.first, run.last, run.count) for run in wanted.runs]
        self._window.join()
        self._window.advance()
        return parts

    def _acquire_batch(self, wanted: Acquisition, first: int, last: int) -> bool:
        """Acquire what is free of one batch; False where nothing more is to be acquired."""
        self._extend_into(last, wanted.limits)
        for run in self._window.within(first, last):
            if run.is_free and not run.span and run.count >= wanted.limits.throttled_from:
                run.span = run.size
        for run in self._window.cut(first, last):
            if not run.is_free:
                continue
            is_throttled = run.count >= wanted.limits.throttled_from
            if (is_throttled or wanted.throttled is not None) and not wanted.throttle(run):
                return False
            wanted.lock(self._window.head(run, wanted.room) if wanted.is_strict else run)
            if wanted.room <= 0 and wanted.is_strict:
                return False
        return self.end_offset > last

    def _archive(self, first: int, last: int) -> None:
        """Archive what is free of these offsets. The window grows over them where they follow it at once."""
        if first <= self.end_offset:
            self._window.extend(last, ARCHIVED)
        for run in self._window.cut(first, last):
            if run.is_free:
                run.state = ARCHIVED

    def _extend_into(self, last: int, limits: ShareLimits) -> None:
        """Put the offsets of a batch into the window that are behind it, as far as there is room."""
        self._window.extend(min(last, self.start_offset + limits.records_max - 1), AVAILABLE)

    # --- acknowledgements ---------------------------------------------------------------------------------------

    def begin(
        self,
        member: str,
        said: Iterable[Acknowledgement],
        limits: ShareLimits,
        now_ms: float,
        *,
        may_renew: bool = True,
    ) -> Generator[int, None, Change]:
        """Mark what a member says of records that it has acquired; all of it counts, or nothing does. A renewed lock
        counts at once. Yields the cost of each step: between two of them others may use the share partition.

        Raises INVALID_REQUEST and INVALID_RECORD_STATE.
        """
        change = Change()
        try:
            for acknowledgement in said:
                yield SPAN_COST
                check_range(acknowledgement)
                if acknowledgement.last_offset >= self.end_offset:
                    raise BrokerError(ErrorCode.INVALID_REQUEST, "The last offset is past acquired records.")
                known = KNOWN_TYPES if may_renew else KNOWN_TYPES - {AcknowledgeType.RENEW}
                for first, last, kind in _spans(acknowledgement, self.start_offset, known):
                    runs = self._window.cut(first, last)
                    for run in runs:
                        self._mark(run, member, kind, change, limits, now_ms)
                    yield SPAN_COST + len(runs)
        except BaseException:
            self.roll_back(change)
            raise
        return change

    def _mark(self, run: OffsetRun, member: str, kind: int, change: Change, limits: ShareLimits, now_ms: float) -> None:
        if not run.is_locked:
            raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "The records are not in the acquired state.")
        if run.member != member:
            raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "The member does not own the records.")
        match kind:
            case AcknowledgeType.RENEW if not limits.may_renew:
                raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "The group does not allow to renew locks.")
            case AcknowledgeType.RENEW:
                run.deadline_ms = now_ms + limits.lock_ms
            case AcknowledgeType.ACCEPT:
                run.mark(ACKNOWLEDGED, change)
            case AcknowledgeType.RELEASE:
                run.mark(self._released(run, limits), change)
            case _:
                run.mark(ARCHIVED, change)

    def _released(self, run: OffsetRun, limits: ShareLimits) -> RecordState:
        """Return the state of records that come back: they are archived after too many deliveries."""
        is_over = run.count >= limits.deliveries_max or run.last < self.log_start_offset
        return ARCHIVED if is_over else AVAILABLE

    def release(self, member: str, limits: ShareLimits) -> Change:
        """Mark everything that a member has acquired as released: its session has ended."""
        change = Change()
        for run in self._window.runs:
            if run.state is not ACQUIRED or run.member != member:
                continue
            if run.is_locked:
                run.mark(self._released(run, limits), change)
            else:
                run.deadline_ms = 0  # where the change in hand is given up, the lock is over
        return change

    def commit(self, *changes: Change) -> bool:
        """Take over changes that are written down. Returns whether records have become available."""
        is_freed = False
        for run in (run for change in changes for run in change.runs):
            assert run.pending is not None, run
            is_lost = run.last < self.log_start_offset
            run.state = ARCHIVED if is_lost and run.pending is AVAILABLE else run.pending
            run.pending, run.change = None, None
            run.member, run.deadline_ms = NOBODY, 0
            is_freed |= run.state is AVAILABLE
        self._window.join()
        self._window.advance()
        return is_freed

    def roll_back(self, *changes: Change) -> None:
        """Give the records back to their members: the changes could not be written down. Their locks go on."""
        for run in (run for change in changes for run in change.runs):
            run.pending = run.change = None
        self._window.join()

    # --- time and the log ---------------------------------------------------------------------------------------

    def expire(self, now_ms: float, limits: ShareLimits) -> list[StateBatch]:
        """End locks whose time is over, `EXPIRED_PER_STEP_MAX` at most: `next_deadline_ms` has the others. Returns
        states to be written down; they count at once.
        """
        changed: list[StateBatch] = []
        for run in self._window.runs:
            if run.state is ACQUIRED and run.pending is None and run.deadline_ms <= now_ms:
                run.state, run.member, run.deadline_ms = self._released(run, limits), NOBODY, 0
                changed.append(StateBatch(run.first, run.last, run.state, run.count))
                if len(changed) == EXPIRED_PER_STEP_MAX:
                    break
        if changed:
            self._window.join()
            self._window.advance()
        return changed

    def move_log_start(self, offset: int) -> bool:
        """Archive available records that the log has lost; those that are acquired go when they come back. Returns
        whether the window has changed.
        """
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset, before = offset, self.start_offset
        self._window.seam = offset
        if offset > self.start_offset:
            self._archive(self.start_offset, offset - 1)
            self._window.join()
            self._window.advance()
        return self.start_offset != before

    def clip(self, log_end_offset: int) -> None:
        """Forget what is behind the end of the log, which an unclean election has lost."""
        self._window.clip(log_end_offset)


def check_range(said: Acknowledgement) -> None:
    """Check that an acknowledgement names a range, and one type for it or one for each offset.

    Raises INVALID_REQUEST.
    """
    size = said.last_offset - said.first_offset + 1
    if said.first_offset < 0 or size < 1:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "The acknowledged offsets are no range.")
    if len(said.types) not in (1, size):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "There is neither one type nor one for each offset.")


def _spans(said: Acknowledgement, start_offset: int, known: Collection[int]) -> list[tuple[int, int, int]]:
    """Return ranges of one type each, from the start of the window on; long ones are divided.

    Raises INVALID_REQUEST for a type that is not known, and for very many of them.
    """
    first, types = max(said.first_offset, start_offset), said.types
    if len(types) > 1:
        if said.last_offset - first >= TYPES_MAX:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"At most {TYPES_MAX} types are acknowledged in one range.")
        types = types[first - said.first_offset :]
    if not set(types).issubset(known):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "An acknowledge type is unknown, or not allowed here.")
    if first > said.last_offset:
        return []
    if len(types) == 1:
        starts = range(first, said.last_offset + 1, SPAN_MAX)
        return [(start, min(start + SPAN_MAX - 1, said.last_offset), types[0]) for start in starts]
    spans: list[tuple[int, int, int]] = []
    for offset, kind in enumerate(types, first):
        if spans and spans[-1][2] == kind and offset - spans[-1][0] < SPAN_MAX:
            spans[-1] = (spans[-1][0], offset, kind)
        else:
            spans.append((offset, offset, kind))
    return spans
