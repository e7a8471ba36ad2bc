"""The partition of `__consumer_offsets` as the groups write to it: with acks=all, and they wait for the commit.

An append that is not committed within `offsets.commit.timeout.ms` is reported as failed. It may still come true later,
and then it counts: the same as a client sees whose answer was lost.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

from kavka_broker.coordinator.append_errors import answered
from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.coordinator.led_partition import LedPartition
from kavka_broker.core.partition.transactions import NO_OFFSET
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.leading.partition import ACKS_ALL
from kavka_broker.storage.log import Origin


class ShardLog:
    """Appends to a led partition, until it is closed."""

    def __init__(self, partition: LedPartition, timers: Timers, commit_timeout_ms: int) -> None:
        self._partition = partition
        self._timers = timers
        self._commit_timeout_ms = commit_timeout_ms
        self._last_offset = NO_OFFSET  # of what was appended last
        self._in_flight: Counter[str] = Counter()  # appends of each group that are not committed yet
        self.is_closed = False

    @property
    def batch_bytes_max(self) -> int:
        """Of a batch that the log takes."""
        return self._partition.log.config.max_message_bytes

    def open(self) -> None:
        """Begin to append. What is in the log may not be committed yet."""
        self._last_offset = self._partition.log.log_end_offset - 1

    def close(self) -> None:
        """Append nothing any more: another broker does."""
        self.is_closed = True

    def is_writing(self, group_id: str) -> bool:
        """Whether something of the group waits for its commit."""
        return self._in_flight[group_id] > 0

    def append(self, batch: bytearray) -> int:
        """Append a batch; returns its base offset. Raises BrokerError, with the error for the member."""
        self._check_open()
        try:
            appended = self._partition.append(memoryview(batch), ACKS_ALL, Origin.COORDINATOR)
        except BrokerError as error:
            raise answered(error) from error
        self._last_offset = appended.last_offset
        return appended.base_offset

    def when_settled(self) -> Waiting | None:
        """Return a future of the commit of all that is in the log, None if it is committed. Raises BrokerError."""
        self._check_open()
        return self.when_committed(None)

    def when_committed(self, group_id: str | None, replay: Callable[[], None] | None = None) -> Waiting | None:
        """Replay what was appended last once it is committed; returns a future of that, None if it is committed. A
        group that is named is writing until then.
        """
        committed = self._partition.when_committed(self._last_offset)
        if committed is None:
            if replay is not None:
                replay()
            return None
        waiting: Waiting = asyncio.get_running_loop().create_future()
        if group_id is not None:
            self._in_flight[group_id] += 1
        timer = self._timers.after(self._commit_timeout_ms, resolve, waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        committed.add_done_callback(partial(self._committed, group_id, replay, waiting, timer))
        return waiting

    def _check_open(self) -> None:
        """Raises BrokerError."""
        if self.is_closed:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)

    def _committed(
        self,
        group_id: str | None,
        replay: Callable[[], None] | None,
        waiting: Waiting,
        timer: Timer,
        committed: asyncio.Future[None],
    ) -> None:
        timer.cancel()
        if group_id is not None:
            self._in_flight[group_id] -= 1
            if not self._in_flight[group_id]:
                del self._in_flight[group_id]
        error = committed.exception()
        match error:
            case None:
                if replay is not None:
                    replay()
                resolve(waiting, ErrorCode.NONE)
            case BrokerError():
                resolve(waiting, answered(error).code)
            case _:
                raise error


def resolve(waiting: Waiting, error: ErrorCode) -> None:
    if not waiting.done():
        waiting.set_result(error)
