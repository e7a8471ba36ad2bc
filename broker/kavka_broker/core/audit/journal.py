"""What waits to be written, and the batches in which it is written.

Events wait while the audit topic takes no records, up to a bound; the chain counts those beyond it as lost. An entry
gets its place in the chain when it goes into a batch, so that what is lost before leaves no gap.
"""

from collections import deque
from typing import Final

from kavka_broker.core.audit.chain import Chain, Entry
from kavka_broker.core.audit.happenings import Tally, Window
from kavka_broker.core.audit.ocsf import event_of
from kavka_broker.core.audit.use import MINUTE_MS, UseWindow

WAITING_MAX: Final = 10_000
"""Events that wait to be written; further ones are lost, and counted as such."""
BATCH_EVENTS_MAX: Final = 50
"""Events of one batch: made in some 5 ms, and with the longest names far below the 1 MiB that a topic takes."""
HEAD_MS: Final = 60_000
"""How long a chain goes on without a head."""


class Journal:
    """The events of one start of a node, from the window in which they are counted to the batches of a chain."""

    __slots__ = ("_chain", "_head_ms", "_lost", "_waiting", "dropped_total", "use", "window")

    def __init__(self, chain: Chain, now_ms: int, interval_ms: int = MINUTE_MS) -> None:
        self.window = Window(now_ms)
        self.use = UseWindow(now_ms, interval_ms)
        self.dropped_total = 0
        self._chain = chain
        self._waiting: deque[Tally] = deque()
        self._lost = 0  # since the last batch
        self._head_ms: int | None = None  # when the last head was added

    @property
    def waiting(self) -> int:
        """How many events wait to be written."""
        return len(self._waiting)

    def close_window(self, now_ms: int, *, is_last: bool = False) -> None:
        """Have what happened wait to be written; use only where it takes no room of others, or with `is_last`."""
        if is_last or (not self._waiting and self.use.is_due(now_ms)):
            start_ms = min(self.use.start_ms, now_ms)
            self._waiting.extend(Tally(use, times, start_ms, now_ms) for use, times in self.use.take(now_ms))
        taken, lost = self.window.take(now_ms)
        room = WAITING_MAX - len(self._waiting)
        self._waiting.extend(taken[:room])
        lost += sum(tally.times for tally in taken[room:])
        self._lost += lost
        self.dropped_total += lost

    def batch(self, now_ms: int, *, is_last: bool = False) -> list[Entry]:
        """Return the next entries of the chain, in their order; none where there is nothing to tell.

        The first batch of a chain begins with a head, and `is_last` ends it.
        """
        entries: list[Entry] = []
        if self._lost:
            entries.append(self._chain.loss(self._lost, now_ms))
            self._lost = 0
        for _ in range(min(BATCH_EVENTS_MAX, len(self._waiting))):
            uid = f"{self._chain.source}-{self._chain.sequence}"
            entries.append(self._chain.event(event_of(self._waiting.popleft(), uid), now_ms))
        if is_last and not self._waiting:
            entries.append(self._chain.end(now_ms))
        elif self._head_ms is None or abs(now_ms - self._head_ms) >= HEAD_MS:
            entries.append(self._chain.head(now_ms))
            self._head_ms = now_ms
        return entries
