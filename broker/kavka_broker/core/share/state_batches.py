"""Ranges of offsets with the state of their delivery, as the share coordinator keeps them.

Of two states of one offset that with more deliveries holds, and of as many deliveries that which is nearer to the end:
a write that arrives late, behind a newer one, makes no record available again that was acknowledged.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import BrokerError, ErrorCode

BATCHES_MAX: Final = 10_000
"""The batches of one write: as many as `group.share.max.partition.max.record.locks` can be at most."""


class RecordState(IntEnum):
    """The state of a record's delivery, with Kafka's numbers. ACQUIRED is never written down."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


ARCHIVING: Final = 3
"""The state of records on their way to a topic of dead letters, which a leader of Apache Kafka 4.4 may have written."""


def as_restored(number: int) -> RecordState:
    """Return the state of records as their next leader begins with it."""
    if number == ARCHIVING:
        return RecordState.ARCHIVED
    return RecordState.AVAILABLE if number == RecordState.ACQUIRED else RecordState(number)


class StateBatch(NamedTuple):
    """The state of the offsets from `first_offset` to `last_offset`, both included."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def check_batches(batches: Sequence[StateBatch]) -> None:
    """Check what a request brings. Raises INVALID_REQUEST."""
    if len(batches) > BATCHES_MAX:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{len(batches)} state batches; at most {BATCHES_MAX}")
    for batch in batches:
        is_range = 0 <= batch.first_offset <= batch.last_offset
        if not is_range or batch.delivery_count < 0 or not 0 <= batch.delivery_state <= RecordState.ARCHIVED:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{batch} is no state of records")


def combine(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Return the same states in order, without overlaps, from `start_offset` on."""
    ordered = [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]
    if all(before.last_offset < after.first_offset for before, after in pairwise(ordered)):
        return _joined(ordered)
    return _swept(sorted(ordered))


def _joined(ordered: Iterable[StateBatch]) -> list[StateBatch]:
    joined: list[StateBatch] = []
    for batch in ordered:
        _append(joined, batch)
    return joined


def _swept(ordered: Sequence[StateBatch]) -> list[StateBatch]:
    """Return the states of batches that overlap, in the order of their first offsets."""
    points = sorted({batch.first_offset for batch in ordered} | {batch.last_offset + 1 for batch in ordered})
    combined: list[StateBatch] = []
    covering: list[tuple[int, int, int]] = []  # a heap: the state that holds comes first
    taken = 0
    for left, right in pairwise(points):
        while taken < len(ordered) and ordered[taken].first_offset <= left:
            batch = ordered[taken]
            heappush(covering, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            taken += 1
        while covering and covering[0][2] < left:
            heappop(covering)
        if covering:
            _append(combined, StateBatch(left, right - 1, -covering[0][1], -covering[0][0]))
    return combined


def _append(combined: list[StateBatch], batch: StateBatch) -> None:
    last = combined[-1] if combined else None
    if last is not None and last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
        combined[-1] = last._replace(last_offset=batch.last_offset)
    else:
        combined.append(batch)
