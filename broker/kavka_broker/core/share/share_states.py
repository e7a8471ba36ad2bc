"""The states of share partitions that one partition of `__share_group_state` holds: the share coordinator's rules.

A state begins with a snapshot, and each write adds an update to it, or a new snapshot after many updates. A command
checks what is asked and returns the records; only `replay` changes the states, so a new leader that reads the log has
what the old one had.

- A share partition that was never initialized takes no write and has nothing to read: INVALID_REQUEST.
- An older leader of the partition is FENCED_LEADER_EPOCH, an older state FENCED_STATE_EPOCH.
- The log keeps every record until it is pruned below `lowest_offset`: the oldest snapshot that still counts.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kavka_broker.core.share.packed_batches import ROW_BYTES, PackedBatches, overlay
from kavka_broker.core.share.share_records import (
    ShareRecord,
    ShareSnapshotKey,
    ShareUpdateKey,
    ShareUpdateValue,
    Snapshot,
)
from kavka_broker.core.share.state_batches import StateBatch, check_batches, combine
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.share import share_update_value as updates

UNSET: Final = -1
"""A start offset, epoch or count that is not known."""

LOOKED_AT_PER_STEP_MAX: Final = 5_000
SHARE_PARTITIONS_MAX: Final = 100_000
"""Share partitions of one partition of the log."""
STATES_BYTES_MAX: Final = 64 * 1024 * 1024
"""Memory of the states of one partition of the log. What would need more is refused; what needs less never is."""
STATE_BYTES: Final = 640
"""A state takes about so much beside its batches."""
NAME_CHARACTER_BYTES: Final = 4


class SharePartitionKey(NamedTuple):
    """A partition of a topic as one group shares it."""

    group_id: str
    topic_id: bytes
    partition: int


class WrittenState(NamedTuple):
    """A write of a share partition's leader; UNSET where something does not change."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


@dataclass(frozen=True, slots=True)
class ShareState:
    """The state of one share partition. `snapshot_offset` is where its last snapshot is in the log."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: PackedBatches
    created_ms: int = 0
    written_ms: int = 0
    updates: int = 0
    snapshot_offset: int = 0

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        return STATE_BYTES + len(self.batches.rows)


class ShareStates:
    """The states by key. `updates_max` updates are followed by a snapshot. Invariant: `size_bytes` is what the states
    and the names of their groups take.
    """

    def __init__(self, updates_max: int) -> None:
        self.by_key: dict[SharePartitionKey, ShareState] = {}
        self.size_bytes = 0
        self._groups: dict[str, tuple[str, int]] = {}  # the name of each group, and how many states have it
        self._updates_max = updates_max

    def lowest_offset(self) -> Generator[None, None, int | None]:
        """Return the offset of the oldest snapshot that counts; None where no share partition has a state. Takes steps:
        snapshots that are written meanwhile are newer.
        """
        lowest: int | None = None
        for number, state in enumerate(list(self.by_key.values()), 1):
            lowest = state.snapshot_offset if lowest is None else min(lowest, state.snapshot_offset)
            if number % LOOKED_AT_PER_STEP_MAX == 0:
                yield
        return lowest

    # --- commands -----------------------------------------------------------------------------------------------

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int) -> list[ShareRecord]:
        """Begin a new state. Raises BrokerError."""
        _check_start(start_offset)
        known = self.by_key.get(key)
        if known is not None and UNSET != state_epoch < known.state_epoch:
            raise BrokerError(ErrorCode.FENCED_STATE_EPOCH)
        if known is None and len(self.by_key) >= SHARE_PARTITIONS_MAX:
            problem = f"{key.group_id} would have one more than {SHARE_PARTITIONS_MAX} share partitions of a log"
            raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
        if known is None:
            name_bytes = 0 if key.group_id in self._groups else NAME_CHARACTER_BYTES * len(key.group_id)
            self._check_room(key, STATE_BYTES + name_bytes)
        snapshot_epoch = 0 if known is None else known.snapshot_epoch + 1
        complete = UNSET if start_offset == UNSET else 0
        none = PackedBatches()
        state = ShareState(snapshot_epoch, state_epoch, 0, start_offset, complete, none, now_ms, now_ms)
        return [_snapshot(key, state)]

    def write(self, key: SharePartitionKey, written: WrittenState, now_ms: int) -> list[ShareRecord]:
        """Take what the partition's leader has decided. Raises BrokerError."""
        known = self._known(key, "Write", written.leader_epoch)
        if UNSET != written.state_epoch < known.state_epoch:
            raise BrokerError(ErrorCode.FENCED_STATE_EPOCH)
        _check_start(written.start_offset)
        check_batches(written.batches)
        update = ShareUpdateValue(
            known.snapshot_epoch,
            known.leader_epoch if written.leader_epoch == UNSET else written.leader_epoch,
            written.start_offset,
            written.delivery_complete_count,
            [updates.StateBatch(*batch) for batch in combine(written.batches, max(written.start_offset, 0))],
        )
        growth_max = (2 * len(update.state_batches) + 1) * ROW_BYTES
        if self.size_bytes + growth_max > STATES_BYTES_MAX:
            self._check_room(key, len(_merged(known, update).batches.rows) - len(known.batches.rows))
        return [self._update(key, known, update, now_ms)]

    def _check_room(self, key: SharePartitionKey, growth: int) -> None:
        """Raises POLICY_VIOLATION where the states would take more memory than they may."""
        if growth > 0 and self.size_bytes + growth > STATES_BYTES_MAX:
            problem = f"the share partitions of a log would take more than {STATES_BYTES_MAX} bytes with {key.group_id}"
            raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)

    def read(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> tuple[ShareState, list[ShareRecord]]:
        """Return the state for a leader of the partition, which fences leaders before it. Raises BrokerError."""
        known = self._known(key, "Read", leader_epoch)
        if leader_epoch in (UNSET, known.leader_epoch):
            return known, []
        update = ShareUpdateValue(known.snapshot_epoch, leader_epoch, UNSET, known.delivery_complete_count, [])
        return known, [self._update(key, known, update, now_ms)]

    def delete(self, key: SharePartitionKey) -> list[ShareRecord]:
        """Forget a share partition. There is nothing to do for one without a state."""
        return [(ShareSnapshotKey(*key), None)] if key in self.by_key else []

    def snapshot(self, key: SharePartitionKey, now_ms: int) -> list[ShareRecord]:
        """Write a share partition's state as a whole."""
        known = self.by_key.get(key)
        if known is None:
            return []
        return [_snapshot(key, replace(known, snapshot_epoch=known.snapshot_epoch + 1, written_ms=now_ms))]

    def _known(self, key: SharePartitionKey, operation: str, leader_epoch: int) -> ShareState:
        known = self.by_key.get(key)
        if known is None:
            problem = f"{operation} operation on uninitialized share partition not allowed."
            raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
        if UNSET != leader_epoch < known.leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        return known

    def _update(self, key: SharePartitionKey, known: ShareState, update: ShareUpdateValue, now_ms: int) -> ShareRecord:
        if known.updates < self._updates_max:
            return ShareUpdateKey(*key), update
        merged = _merged(known, update)
        return _snapshot(key, replace(merged, snapshot_epoch=known.snapshot_epoch + 1, written_ms=now_ms))

    # --- the log ------------------------------------------------------------------------------------------------

    def replay(
        self,
        key: Message,
        value: Snapshot | ShareUpdateValue | None,
        offset: int,
        timestamp_ms: int,
        *,
        goes_on: bool = False,
    ) -> int:
        """Take over a record of the log, or a part of one, which `goes_on` after the first. Returns how many bytes of
        batches its state has.
        """
        match key, value:
            case ShareSnapshotKey(), None:
                self._forget(_key(key))
            case ShareSnapshotKey(), Snapshot():
                return self._put(_key(key), _of_snapshot(value, offset))
            case ShareUpdateKey(), ShareUpdateValue():
                known = self.by_key.get(_key(key))
                if known is None:  # its snapshot was pruned, so a later record ends or replaces it
                    known = ShareState(
                        value.snapshot_epoch, 0, 0, UNSET, UNSET, PackedBatches(), snapshot_offset=offset
                    )
                merged = _merged(known, value)
                if not goes_on:
                    merged = replace(merged, updates=known.updates + 1, written_ms=timestamp_ms)
                return self._put(_key(key), merged)
            case _:
                pass  # a tombstone of an update means nothing
        return 0

    def _put(self, key: SharePartitionKey, state: ShareState) -> int:
        """Keep a state. The keys of one group share its name, which each record of the log has by itself."""
        known = self.by_key.get(key)
        if known is None:
            group_id, count = self._groups.get(key.group_id, (key.group_id, 0))
            if not count:
                self.size_bytes += NAME_CHARACTER_BYTES * len(group_id)
            self._groups[group_id] = group_id, count + 1
            key = key._replace(group_id=group_id)
        self.size_bytes += state.size_bytes - (0 if known is None else known.size_bytes)
        self.by_key[key] = state
        return len(state.batches.rows)

    def _forget(self, key: SharePartitionKey) -> None:
        known = self.by_key.pop(key, None)
        if known is None:
            return
        self.size_bytes -= known.size_bytes
        group_id, count = self._groups[key.group_id]
        if count > 1:
            self._groups[group_id] = group_id, count - 1
        else:
            self.size_bytes -= NAME_CHARACTER_BYTES * len(group_id)
            del self._groups[group_id]


def _check_start(start_offset: int) -> None:
    """Raises INVALID_REQUEST."""
    if start_offset < UNSET:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{start_offset} is no start offset; write 0 or more, or {UNSET}")


def _key(key: ShareSnapshotKey | ShareUpdateKey) -> SharePartitionKey:
    return SharePartitionKey(key.group_id, bytes(key.topic_id), key.partition)


def _merged(known: ShareState, update: ShareUpdateValue) -> ShareState:
    """Return the state with an update. Within a state epoch the start moves forward only."""
    start_offset = max(known.start_offset, update.start_offset)
    written = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in update.state_batches
    ]
    complete = update.delivery_complete_count
    return replace(
        known,
        leader_epoch=max(known.leader_epoch, update.leader_epoch),
        start_offset=start_offset,
        delivery_complete_count=known.delivery_complete_count if complete == UNSET else complete,
        batches=overlay(known.batches, written, max(start_offset, 0)),
    )


def _snapshot(key: SharePartitionKey, state: ShareState) -> ShareRecord:
    return ShareSnapshotKey(*key), Snapshot(
        state.snapshot_epoch,
        state.state_epoch,
        state.leader_epoch,
        state.start_offset,
        state.delivery_complete_count,
        state.created_ms,
        state.written_ms,
        state.batches,
    )


def _of_snapshot(value: Snapshot, offset: int) -> ShareState:
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        value.batches,
        value.create_timestamp,
        value.write_timestamp,
        snapshot_offset=offset,
    )
