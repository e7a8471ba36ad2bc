"""Counts of the records of share groups that a broker has given out, by what became of them."""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.share.runs import Run
from kavka_broker.core.share.share_partition import Acquired
from kavka_broker.core.share.state_batches import RecordState, StateBatch

OUTCOMES: Final[dict[int, str]] = {
    RecordState.ACKNOWLEDGED: "accepted",
    RecordState.AVAILABLE: "released",
    RecordState.ARCHIVED: "archived",
}


class ShareCounts:
    """Numbers of records since the start, by event."""

    __slots__ = ("by_event",)

    def __init__(self) -> None:
        self.by_event = dict.fromkeys(("acquired", "redelivered", *OUTCOMES.values(), "expired"), 0)

    def acquired(self, acquired: Iterable[Acquired]) -> None:
        """Count records that a member has acquired."""
        for first_offset, last_offset, delivery_count in acquired:
            size = last_offset - first_offset + 1
            self.by_event["acquired"] += size
            if delivery_count > 1:
                self.by_event["redelivered"] += size

    def ended(self, batches: Iterable[StateBatch]) -> None:
        """Count records that are acquired no longer."""
        for batch in batches:
            self.by_event[OUTCOMES[batch.delivery_state]] += batch.last_offset - batch.first_offset + 1

    def changed(self, runs: Iterable[Run]) -> None:
        """Count records of a change that is about to be committed."""
        for run in runs:
            assert run.pending is not None, run
            self.by_event[OUTCOMES[run.pending]] += run.last - run.first + 1

    def expired(self, batches: Iterable[StateBatch]) -> None:
        """Count records whose locks have ended by themselves."""
        self.by_event["expired"] += sum(batch.last_offset - batch.first_offset + 1 for batch in batches)
