"""Counts of the records of share groups that a broker has given out, by what became of them."""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.share.share_partition import Acquired
from kavka_broker.core.share.share_window import OffsetRun
from kavka_broker.core.share.state_batches import RecordState, StateBatch

PAIRS_MAX: Final = 200
OUTCOMES: Final[dict[int, str]] = {
    RecordState.ACKNOWLEDGED: "accepted",
    RecordState.AVAILABLE: "released",
    RecordState.ARCHIVED: "archived",
}


class ShareCounts:
    """Numbers of records since the start, by event. What is counted here counts in `total` as well."""

    __slots__ = ("by_event", "total")

    def __init__(self, total: "ShareCounts | None" = None) -> None:
        self.by_event = dict.fromkeys(("acquired", "redelivered", *OUTCOMES.values(), "expired"), 0)
        self.total = total

    def _add(self, event: str, size: int) -> None:
        self.by_event[event] += size
        if self.total is not None:
            self.total.by_event[event] += size

    def acquired(self, acquired: Iterable[Acquired]) -> None:
        """Count records that a member has acquired."""
        for first_offset, last_offset, delivery_count in acquired:
            size = last_offset - first_offset + 1
            self._add("acquired", size)
            if delivery_count > 1:
                self._add("redelivered", size)

    def ended(self, batches: Iterable[StateBatch]) -> None:
        """Count records that are acquired no longer."""
        for batch in batches:
            self._add(OUTCOMES[batch.delivery_state], batch.last_offset - batch.first_offset + 1)

    def changed(self, runs: Iterable[OffsetRun]) -> None:
        """Count records of a change that is about to be committed."""
        for run in runs:
            assert run.pending is not None, run
            self._add(OUTCOMES[run.pending], run.last - run.first + 1)

    def expired(self, batches: Iterable[StateBatch]) -> None:
        """Count records whose locks have ended by themselves."""
        self._add("expired", sum(batch.last_offset - batch.first_offset + 1 for batch in batches))


class CountsByTopic:
    """The counts of groups in topics, of `PAIRS_MAX` pairs; those of others are in the total alone. A pair is forgotten
    with the last share partition of its group here, whose name it shares.
    """

    def __init__(self) -> None:
        self.total = ShareCounts()
        self.by_pair: dict[tuple[str, str], ShareCounts] = {}

    def of(self, group_id: str, topic: str) -> ShareCounts:
        """Return where records of a group in a topic are counted."""
        pair = group_id, topic
        if pair not in self.by_pair:
            if len(self.by_pair) >= PAIRS_MAX:
                return self.total
            self.by_pair[pair] = ShareCounts(self.total)
        return self.by_pair[pair]

    def forget(self, group_id: str) -> None:
        """Forget a group that has no share partition here."""
        self.by_pair = {pair: counts for pair, counts in self.by_pair.items() if pair[0] != group_id}
