"""One share partition whose partition this broker leads: the window of the core, and what it waits for.

    load ──> read the state at the share coordinator, choose a start ──> serve
    acknowledge ──> begin ──> queue ──> write ──> commit, or roll back
    timer ──> expire ──> write

One write is under way at a time, and takes with it all changes that have come meanwhile. A state that another leader,
or a newer state, has fenced is given up: the next fetch reads it again.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.share.share_counts import ShareCounts
from kavka_broker.coordinator.share.share_reading import READ_BYTES_MAX, read_batches, readable_end
from kavka_broker.coordinator.share.share_state_client import Place, ShareStateClient
from kavka_broker.core.share.share_partition import (
    Acknowledgement,
    Acquired,
    Acquisition,
    ShareLimits,
    SharePartition,
)
from kavka_broker.core.share.share_states import UNSET, WrittenState
from kavka_broker.core.share.share_window import Change
from kavka_broker.core.share.start_offset import EARLIEST, duration_ms
from kavka_broker.core.share.state_batches import StateBatch
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.logs import get
from kavka_broker.loop.slices import Cost, Work, sliced
from kavka_broker.loop.tasks import watch
from kavka_broker.loop.timers import Timer
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.purgatory import FetchWaiter
from kavka_broker.storage.time_search import find_by_timestamp

log = get("coordinator")

READS_MAX: Final = 4
"""Reads of one fetch while everything that it finds is hidden: aborted transactions."""
RECORDS_IN_FLIGHT_MAX: Final = 1_000_000
"""Records in flight in all share partitions of a broker, beside `RECORDS_RESERVED` in each: a run takes 220 bytes."""
RECORDS_RESERVED: Final = 25
BATCHES_PER_WRITE_MAX: Final = 200
"""Ranges that one write to the share coordinator names: a few milliseconds there."""
RUNS_PER_WRITE: Final = 2_000
"""Runs of changes beyond which the next change waits for the next write: a few milliseconds here."""

ERRORS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.INVALID_REQUEST: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.POLICY_VIOLATION: ErrorCode.COORDINATOR_NOT_AVAILABLE,  # it has no room now
}
"""The error for the member where the share coordinator has said this."""


class Fetched(NamedTuple):
    """Records that a member has acquired, and the batches of the log that hold them."""

    acquired: list[Acquired]
    parts: list[memoryview]
    size_bytes: int
    is_unfinished: bool = False  # the window has moved over what members do not get, and there may be more behind it


NOTHING: Final = Fetched([], [], 0)


Queued = tuple[Change, "asyncio.Future[ErrorCode]"]
"""A change that waits to be written, and the answer to who asked for it."""


class InFlight:
    """The records in flight in all share partitions of a broker: each may be a run of its own."""

    __slots__ = ("_of", "_records_max", "_reserved", "records")

    def __init__(self, records_max: int = RECORDS_IN_FLIGHT_MAX, reserved: int = RECORDS_RESERVED) -> None:
        self._records_max, self._reserved = records_max, reserved
        self.records = 0
        self._of: dict[ShareLeader, int] = {}

    def count(self, leader: "ShareLeader") -> None:
        """Count the records of a share partition as they are now; none where it is closed."""
        before = self._of.pop(leader, 0)
        in_flight = 0
        if leader.window is not None and not leader.is_closed:
            # A gap of the log is one run, however long: more than a window may have locked are not runs of their own.
            in_flight = min(leader.window.in_flight, leader.settings().partition_max_record_locks)
        if in_flight:
            self._of[leader] = in_flight
        self.records += in_flight - before

    def room(self, leader: "ShareLeader") -> int:
        """Return how many records a share partition may have in flight."""
        return max(self._reserved, self._of.get(leader, 0) + self._records_max - self.records)


class ShareLeader:
    """A share partition of a led partition. `on_lost` is called when its state is to be read again."""

    def __init__(
        self,
        group_id: str,
        partition: Partition,
        states: ShareStateClient,
        settings: Callable[[], ShareGroupSettings],
        pacing: Pacing,
        on_lost: Callable[["ShareLeader"], None],
    ) -> None:
        self.group_id = group_id
        self.partition = partition
        self.place: Place = (bytes(partition.topic_id), partition.index)
        self.waiters: list[FetchWaiter] = []  # fetches woken by records that become available
        self.window: SharePartition | None = None
        self.is_closed = False
        self.counts = ShareCounts()
        self.oldest: tuple[int, int | None] = (UNSET, None)  # an offset that waits, and the timestamp there
        self.in_flight = InFlight()
        self.is_retiring = False  # forgotten as soon as nothing is written or acquired
        self._states = states
        self.settings = settings
        self._clock = pacing.clock
        self._timers = pacing.timers
        self._slices = pacing.slices
        self._on_lost = on_lost
        self._queued: list[Queued] = []
        self._unwritten: list[StateBatch] = []  # states of locks that have ended
        self._is_moved = False  # whether the start has moved without a member's doing
        self._writing: asyncio.Task[None] | None = None
        self._timer: Timer | None = None

    def __str__(self) -> str:
        return f"{self.group_id}:{self.partition}"

    @property
    def limits(self) -> ShareLimits:
        settings = self.settings()
        locks = min(settings.partition_max_record_locks, self.in_flight.room(self))
        return ShareLimits(
            locks, settings.delivery_count_limit, settings.record_lock_duration_ms, settings.renew_acknowledge_enable
        )

    @property
    def is_committed_only(self) -> bool:
        return self.settings().isolation_level == "read_committed"

    @property
    def is_idle(self) -> bool:
        """Whether nothing is acquired, and nothing is being written."""
        return self._writing is None and not self._queued and (self.window is None or self.window.is_idle)

    def close(self) -> None:
        """Give the share partition up: acknowledgements that wait are refused."""
        self.is_closed = True
        self.in_flight.count(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            self._writing.cancel()
        queued, self._queued = self._queued, []
        for _, answered in queued:
            _resolve(answered, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._wake()

    # --- loading ------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the state at the share coordinator, and write down where the group begins. Raises BrokerError."""
        partition = self.partition
        leadership = partition.leadership
        if leadership is None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if leadership.start_offset > partition.high_watermark:
            # The followers have yet to say how far they are: an end would go back.
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the high watermark is not known yet")
        state = await self._states.read(self.group_id, self.place, partition.leader_epoch)
        start_offset = state.start_offset
        if start_offset == UNSET:
            start_offset = await self._begin_at()
            # Of a partition without a record nothing is counted: to DescribeShareGroupOffsets the group begins nowhere.
            complete = 0 if partition.high_watermark else UNSET
            written = WrittenState(state.state_epoch, partition.leader_epoch, start_offset, complete, ())
            await self._states.write(self.group_id, self.place, written)
        restoring = SharePartition.restored(state.state_epoch, start_offset, state.batches)
        window = await self._slices.whole(sliced(restoring, Cost()))
        window.clip(partition.log.log_end_offset)
        window.move_log_start(partition.log.log_start_offset)
        self.window = window
        self.in_flight.count(self)
        log.debug("share_partition.loaded", partition=str(self), start_offset=window.start_offset)

    async def _begin_at(self) -> int:
        setting = self.settings().auto_offset_reset
        if setting == EARLIEST:
            return self.partition.log.log_start_offset
        if (ago_ms := duration_ms(setting)) is not None:
            search = find_by_timestamp(self.partition.log, self._clock.now_ms() - ago_ms, Cost())
            found = await self._slices.whole(search)
            if found is not None and found[0] < self.partition.high_watermark:
                return found[0]
        return self.partition.high_watermark

    # --- fetches ------------------------------------------------------------------------------------------------

    def readable_bytes(self, bytes_max: int) -> int:
        """Return about how many bytes a fetch would get."""
        window, limits = self._window(), self.limits
        offset, upper_offset = window.next_fetch_offset, readable_end(self.partition, self.is_committed_only)
        if offset >= upper_offset or not window.may_acquire(limits):
            return 0
        if offset < window.end_offset:
            return bytes_max  # records came back: nobody waits for more
        return self.partition.read(offset, min(bytes_max, READ_BYTES_MAX), upper_offset, at_least_one=True).size_bytes

    def fetch(self, wanted: Acquisition, bytes_max: int, at_least_one: bool) -> Fetched:
        """Acquire records for a member. Raises BrokerError."""
        window = self._window()
        start_offset, fetched = window.start_offset, NOTHING
        window.move_log_start(self.partition.log.log_start_offset)
        for _ in range(READS_MAX):
            offset = window.next_fetch_offset
            fetched = self._fetch_at(window, offset, wanted, bytes_max, at_least_one)
            if fetched.acquired or window.next_fetch_offset == offset:
                break
        else:
            fetched = NOTHING._replace(is_unfinished=True)
        if window.start_offset != start_offset:  # it has left behind what no member gets
            self._is_moved = True
            self._write_soon()
        self._arm()
        return fetched

    def _fetch_at(
        self, window: SharePartition, offset: int, wanted: Acquisition, bytes_max: int, at_least_one: bool
    ) -> Fetched:
        if not window.may_acquire(wanted.limits):
            return NOTHING
        found = read_batches(self.partition, offset, bytes_max, at_least_one, is_committed_only=self.is_committed_only)
        if found is None:
            return NOTHING
        acquired = window.acquire(wanted, offset, found.batches)
        self.counts.acquired(acquired)
        parts = found.holding(acquired)
        return Fetched(acquired, parts, sum(map(len, parts)))

    def _window(self) -> SharePartition:
        """Raises BrokerError where the share partition is given up."""
        if self.window is None or self.is_closed or not self.partition.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.window

    # --- acknowledgements ---------------------------------------------------------------------------------------

    async def acknowledge(self, member: str, said: Sequence[Acknowledgement], *, may_renew: bool = True) -> None:
        """Take what a member says of its records; returns when that is written down. Raises BrokerError."""
        answered = await self.begin_acknowledging(member, said, may_renew=may_renew)
        error = ErrorCode.NONE if answered is None else await answered
        if error is not ErrorCode.NONE:
            raise BrokerError(error)

    async def begin_acknowledging(
        self, member: str, said: Sequence[Acknowledgement], *, may_renew: bool = True
    ) -> "asyncio.Future[ErrorCode] | None":
        """Take what a member says of its records: from then on no fetch acquires them. Returns a future of what becomes
        of it, None where nothing is to be written down. Raises BrokerError.
        """
        return await self._slices.whole(self._take(self._window(), member, said, may_renew=may_renew))

    def _take(
        self, window: SharePartition, member: str, said: Sequence[Acknowledgement], *, may_renew: bool
    ) -> "Work[asyncio.Future[ErrorCode] | None]":
        """Mark what a member says and queue it, in one step at the end: a client may be gone meanwhile."""
        marking = window.begin(member, said, self.limits, self._clock.monotonic_ms(), may_renew=may_renew)
        try:
            change = yield from sliced(marking, Cost())
        finally:
            self._arm()
        return self._written(change) if change.runs else None

    def release(self, member: str) -> None:
        """Release everything that a member has acquired: its session has ended."""
        if self.window is None or self.is_closed:
            return
        change = self.window.release(member, self.limits)
        if change.runs:
            self._written(change)

    def _written(self, change: Change) -> asyncio.Future[ErrorCode]:
        """Write a change down; returns a future of what became of it."""
        answered: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        if self.is_closed:
            answered.set_result(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return answered
        self._queued.append((change, answered))
        self._write_soon()
        return answered

    def _write_soon(self) -> None:
        if self._writing is None and not self.is_closed:
            task = asyncio.get_running_loop().create_task(self._write_all(), name=f"write share state {self}")
            self._writing = watch(task)

    async def _write_all(self) -> None:
        try:
            while (self._queued or self._unwritten or self._is_moved) and not self.is_closed:
                await self._write()
        finally:
            self._writing = None
        if self.is_retiring and self.is_idle:
            self._on_lost(self)

    async def _write(self) -> None:
        """Write all changes that are queued, and take them over or roll them back."""
        window, (queued, self._queued) = self._window(), divided(self._queued)
        changes = [change for change, _ in queued]
        expired, self._unwritten, self._is_moved = self._unwritten, [], False
        start_offset, complete = window.outcome_of(changes)
        batches = [*expired, *(batch for change in changes for batch in change.batches)]
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            behind = [batch for batch in batches if batch.last_offset >= start_offset]
            while len(behind) > BATCHES_PER_WRITE_MAX:  # the start moves with the last of them
                await self._write_state(window, window.start_offset, UNSET, behind[:BATCHES_PER_WRITE_MAX])
                behind = behind[BATCHES_PER_WRITE_MAX:]
            await self._write_state(window, start_offset, complete, behind)
            error = ErrorCode.NONE
        except BrokerError as refused:
            error = ERRORS.get(refused.code, refused.code)
            log.info("share_state.not_written", partition=str(self), reason=str(refused))
        finally:  # also where this broker gives the share partition up meanwhile: every answer is given
            self._end(window, queued, error)

    async def _write_state(
        self, window: SharePartition, start_offset: int, complete: int, batches: Sequence[StateBatch]
    ) -> None:
        """Raises BrokerError."""
        written = WrittenState(window.state_epoch, self.partition.leader_epoch, start_offset, complete, batches)
        await self._states.write(self.group_id, self.place, written)

    def _end(
        self,
        window: SharePartition,
        queued: Sequence[Queued],
        error: ErrorCode,
    ) -> None:
        """Tell members what became of their changes. States of ended locks hold here whatever was written of them: the
        next leader may deliver these records once more.
        """
        changes = [change for change, _ in queued]
        was_full, is_freed = not window.has_room(self.limits), False
        if error is ErrorCode.NONE:
            for change in changes:
                self.counts.changed(change.runs)
            is_freed = window.commit(*changes)
        else:
            window.roll_back(*changes)
        for _, answered in queued:
            _resolve(answered, error)
        if self.is_closed:
            return
        if is_freed or (was_full and window.has_room(self.limits)):
            self._wake()
        if error is not ErrorCode.NONE and error is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._on_lost(self)
        self._arm()

    # --- time ---------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Have the next lock end in time, after the window has changed."""
        self.in_flight.count(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.window is None or self.is_closed:
            return
        deadline_ms = self.window.next_deadline_ms
        if deadline_ms is not None:
            self._timer = self._timers.after(max(0, deadline_ms - self._clock.monotonic_ms()), self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.window is None or self.is_closed:
            return
        expired = self.window.expire(self._clock.monotonic_ms(), self.limits)
        if expired:
            self.counts.ended(expired)
            self.counts.expired(expired)
            self._unwritten += expired
            self._write_soon()
            self._wake()
        self._arm()

    def _wake(self) -> None:
        for waiter in list(self.waiters):
            waiter.interrupt()


def divided(queued: list[Queued]) -> tuple[list[Queued], list[Queued]]:
    """Return the changes of the next write, until they have many runs, and the others."""
    sums = accumulate(len(change.runs) for change, _ in queued)
    end = 1 + sum(runs < RUNS_PER_WRITE for runs in sums)
    return queued[:end], queued[end:]


def _resolve(answered: "asyncio.Future[ErrorCode]", error: ErrorCode) -> None:
    if not answered.done():
        answered.set_result(error)
