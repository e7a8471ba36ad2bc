"""The share partitions' states in one partition of `__share_group_state` that this broker leads.

A command of the core gives records; they are appended and replayed at once, and its answer waits until every in-sync
replica has them. What is read waits as well: a state that another leader could lose is told to nobody.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.coordinator.led_partition import LedPartition
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.core.share.share_records import ShareRecord, frame
from kavka_broker.core.share.share_states import SharePartitionKey, ShareState, ShareStates, WrittenState
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.slices import Work
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.record import build_batch

log = get("coordinator")

SNAPSHOTS_PER_SLICE_MAX: Final = 50
LOOKED_AT_PER_SLICE_MAX: Final = 5_000


class PrunablePartition(LedPartition, Protocol):
    """A partition to which the coordinator appends, and whose start it moves forward."""

    def trim(self, offset: int, /) -> asyncio.Future[None] | None: ...


class ShareShard:
    """The states of one led partition. `is_loading` until its log is read; `is_unreadable` if it cannot be read."""

    def __init__(
        self, partition: PrunablePartition, states: ShareStates, clock: Clock, timers: Timers, write_timeout_ms: int
    ) -> None:
        self.partition = partition
        self.states = states
        self.is_loading = True
        self.is_unreadable = False
        self._log = ShardLog(partition, timers, write_timeout_ms)
        self._clock = clock

    @property
    def is_closed(self) -> bool:
        return self._log.is_closed

    def open(self) -> None:
        """Begin to serve the states. What was loaded may rest on records that are not committed yet."""
        self._log.open()
        self.is_loading = False

    def close(self) -> None:
        """Another broker takes over: nothing is appended any more."""
        self._log.close()

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Waiting | None:
        """Begin a new state; returns a future of its commit, None if it is committed. Raises BrokerError."""
        now_ms = self._clock.now_ms()
        return self._commit(self.states.initialize(key, state_epoch, start_offset, now_ms), now_ms)

    def write(self, key: SharePartitionKey, written: WrittenState) -> Waiting | None:
        """As `initialize`, for what the partition's leader has decided."""
        now_ms = self._clock.now_ms()
        return self._commit(self.states.write(key, written, now_ms), now_ms)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> tuple[ShareState, Waiting | None]:
        """Return the state for a leader of the partition, with a future of its commit. Raises BrokerError."""
        now_ms = self._clock.now_ms()
        state, records = self.states.read(key, leader_epoch, now_ms)
        return state, self._commit(records, now_ms)

    def summarize(self, key: SharePartitionKey) -> tuple[ShareState | None, Waiting | None]:
        """Return the state; None for a share partition without one. Raises BrokerError."""
        return self.states.by_key.get(key), self._log.when_settled()

    def delete(self, key: SharePartitionKey) -> Waiting | None:
        """As `initialize`, for the end of a state."""
        return self._commit(self.states.delete(key), self._clock.now_ms())

    def _commit(self, records: Sequence[ShareRecord], now_ms: int) -> Waiting | None:
        self._append(records, now_ms)
        return self._log.when_settled()

    def _append(self, records: Sequence[ShareRecord], now_ms: int) -> None:
        """Append records and replay them. Raises BrokerError."""
        if not records:
            return
        base_offset = self._log.append(build_batch([frame(record) for record in records], timestamp_ms=now_ms))
        for offset, (key, value) in enumerate(records, base_offset):
            self.states.replay(key, value, offset, now_ms)

    # --- upkeep -------------------------------------------------------------------------------------------------

    def snapshot_cold(self, interval_ms: int) -> Iterator[None]:
        """Write snapshots of share partitions that nobody has written for long, a slice a step."""
        before_ms, is_growing = self._clock.now_ms() - interval_ms, False
        cold: list[SharePartitionKey] = []
        for number, (key, state) in enumerate(list(self.states.by_key.items()), 1):
            if state.written_ms < before_ms:
                cold.append(key)
            is_growing |= state.written_ms >= before_ms or state.updates > 0
            if number % LOOKED_AT_PER_SLICE_MAX == 0:
                yield
        if not is_growing:
            return  # the log would not become shorter
        for number, key in enumerate(cold, 1):
            self._append_quietly(self.states.snapshot(key, self._clock.now_ms()))
            if number % SNAPSHOTS_PER_SLICE_MAX == 0:
                yield

    def forget(self, is_gone: Callable[[SharePartitionKey], bool]) -> Iterator[None]:
        """Delete the states of partitions that are gone, a slice a step."""
        for number, key in enumerate(list(self.states.by_key), 1):
            if is_gone(key):
                self._append_quietly(self.states.delete(key))
            if number % SNAPSHOTS_PER_SLICE_MAX == 0:
                yield

    def _append_quietly(self, records: Sequence[ShareRecord]) -> None:
        try:
            self._append(records, self._clock.now_ms())
        except BrokerError as error:
            log.info("share_state.not_written", partition=self.partition.index, reason=str(error))

    def prune(self) -> Work[None]:
        """Move the start of the log to the oldest snapshot that still counts, a slice a step. Nothing is pruned before
        that snapshot is committed: another leader may cut it off, and needs the one before it.
        """
        lowest = yield from self.states.lowest_offset()
        offset = self.partition.log.log_end_offset if lowest is None else lowest
        committing = self._log.when_settled()
        if committing is None:
            self._trim(offset)
        else:
            committing.add_done_callback(partial(self._trim_if_committed, offset))

    def _trim_if_committed(self, offset: int, committing: Waiting) -> None:
        if not committing.cancelled() and committing.result() is ErrorCode.NONE and not self.is_closed:
            self._trim(offset)

    def _trim(self, offset: int) -> None:
        if offset <= self.partition.log.log_start_offset:
            return
        moved = self.partition.trim(offset)
        if moved is not None:
            moved.add_done_callback(_look_at)
        log.debug("share_states.pruned", partition=self.partition.index, offset=offset)


def _look_at(moved: asyncio.Future[None]) -> None:
    """Take note of the end of a move, which fails with the leadership: the next leader prunes again."""
    if not moved.cancelled():
        moved.exception()
