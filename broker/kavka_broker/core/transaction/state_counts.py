"""How many transactional ids are in which state, as of one look at all of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kavka_broker.core.transaction.state import Transaction, TransactionState

__all__ = ["Census", "Count"]


@dataclass(frozen=True, slots=True)
class Census:
    """Ids by state, and when the oldest open transaction began; None without one."""

    states: Mapping[TransactionState, int] = field(default_factory=dict)
    oldest_started_ms: int | None = None

    @classmethod
    def of(cls, several: Iterable["Census"]) -> "Census":
        """Several together."""
        count = Count()
        for census in several:
            count.states.update(census.states)
            count.note_start(census.oldest_started_ms)
        return count.result()


@dataclass(slots=True)
class Count:
    """A census that is being taken."""

    states: Counter[TransactionState] = field(default_factory=Counter)
    oldest_started_ms: int | None = None

    def add(self, transaction: Transaction) -> None:
        """Count an id."""
        standing = transaction.standing
        self.states[standing.state] += 1
        if standing.state is TransactionState.ONGOING:
            self.note_start(standing.started_ms)

    def note_start(self, started_ms: int | None) -> None:
        """Keep the earlier of two starts."""
        if started_ms is not None and (self.oldest_started_ms is None or started_ms < self.oldest_started_ms):
            self.oldest_started_ms = started_ms

    def result(self) -> Census:
        return Census(dict(self.states), self.oldest_started_ms)
