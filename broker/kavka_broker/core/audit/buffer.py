"""What waits to be written, and the batches in which it is written.

An entry gets its place in the chain when it goes into a batch, so that what is lost before leaves no gap. While the
audit topic takes no records, the policy says what becomes of events:

- PERMIT: up to `held_max` of them wait; those beyond are lost, and the chain counts them.
- REJECT: none is lost. The journal is full once it holds `held_max`, and whoever asks then is to be refused before
  anything has happened (`admit`). What was let in before is told in full, and so is what those have changed who may
  always (`let_in`): they are there to mend the topic.
"""

from collections import deque
from enum import StrEnum
from typing import Final

from kavka_broker.core.audit.chain import HEAD_MS, Chain, Entry
from kavka_broker.core.audit.events import KINDS, KINDS_MAX, Denied, Tally, Window, kind_of
from kavka_broker.core.audit.ocsf import event_of
from kavka_broker.core.audit.usage import MINUTE_MS, OTHERS, UseWindow

HELD_MAX: Final = 20_000
"""Events that are kept, unless configured otherwise. One window of refusals and logins does not come near it: only a
topic that takes nothing lets a journal become full.
"""
OTHER_PRINCIPALS: Final = f"User:{OTHERS}"
PRINCIPALS_MAX: Final = 100
"""Principals whose events about refusals are counted apart, the first ones since the start."""
BATCH_EVENTS_MAX: Final = 50
"""Events of one batch: made in some 5 ms, and with the longest names far below the 1 MiB that a topic takes."""


class Policy(StrEnum):
    """What becomes of clients while events cannot be written (`kavka.audit.failure.policy`)."""

    PERMIT = "permit"
    REJECT = "reject"


class Journal:
    """The events of one start of a node, from the window in which they are counted to the batches of a chain."""

    __slots__ = (
        "_chain",
        "_given",
        "_head_ms",
        "_lost",
        "_waiting",
        "dropped_total",
        "held_max",
        "is_full",
        "policy",
        "promised",
        "refusal_events",
        "told",
        "use",
        "window",
    )

    def __init__(
        self,
        chain: Chain,
        now_ms: int,
        interval_ms: int = MINUTE_MS,
        policy: Policy = Policy.PERMIT,
        held_max: int = HELD_MAX,
    ) -> None:
        self.policy = policy
        self.held_max = held_max
        # Of changes that were let in, and as many again twice of those who may always.
        self.window = Window(now_ms, 3 * held_max if policy is Policy.REJECT else KINDS_MAX)
        self.use = UseWindow(now_ms, interval_ms)
        self.is_full = False  # what would have to be told is to be refused
        self.dropped_total = 0
        self.told = dict.fromkeys(KINDS, 0)  # how often what happened that has its place in the chain
        self.refusal_events = {OTHER_PRINCIPALS: 0}  # events about refused requests in the chain, by principal
        self._chain = chain
        self._waiting: deque[Tally] = deque()
        self._given = 0  # events of the batch that is being written
        self.promised = 0  # changes that requests under way may make
        self._lost = 0  # since the last batch
        self._head_ms = now_ms  # when the last head was added

    @property
    def waiting(self) -> int:
        """How many events wait to be written."""
        return len(self._waiting)

    @property
    def held(self) -> int:
        """How many events are being written, wait, are counted or promised room; use has room of its own."""
        return self._given + len(self._waiting) + len(self.window) + self.promised

    @property
    def usage(self) -> float:
        """Return how much of its room is used: at 1 it is full."""
        held = self.held if self.policy is Policy.REJECT else self._given + len(self._waiting)
        return held / self.held_max

    def _look(self) -> None:
        """Become full, or have room again: not before half of it, so that clients do not come and go."""
        if self.policy is Policy.REJECT:
            self.is_full = self.held >= (self.held_max // 2 if self.is_full else self.held_max)

    def admit(self, changes: int) -> bool:
        """Promise room for the changes of a request, until `end`; returns False where there is none."""
        self._look()
        if self.is_full:
            return False
        self.let_in(changes)
        return True

    def let_in(self, changes: int) -> None:
        """Promise room for the changes of a request that may always come, until `end`."""
        self.promised += changes

    def end(self, changes: int) -> None:
        """Take a promise back: what the request has changed is counted."""
        assert self.promised >= changes, (self.promised, changes)
        self.promised -= changes
        self._look()

    def close_window(self, now_ms: int, *, is_last: bool = False) -> None:
        """Have what happened wait to be written; use only where it takes no room of others, or with `is_last`."""
        self._close(now_ms, is_last=is_last)
        self._look()

    def _close(self, now_ms: int, *, is_last: bool) -> None:
        if is_last or (not self._waiting and self.use.is_due(now_ms)):
            start_ms = min(self.use.start_ms, now_ms)
            self._waiting.extend(Tally(use, times, start_ms, now_ms) for use, times in self.use.take(now_ms))
        taken = self.window.take(now_ms)
        room = len(taken) if self.policy is Policy.REJECT else max(self.held_max - self._given - len(self._waiting), 0)
        self._waiting.extend(taken[:room])
        lost = sum(tally.times for tally in taken[room:])
        self._lost += lost
        self.dropped_total += lost

    def batch(self, now_ms: int, *, is_last: bool = False) -> list[Entry]:
        """Return the next entries of the chain, in their order; none where there is nothing to tell. They take room
        until they are `written`.

        The first batch of a chain begins with a head, and `is_last` ends it.
        """
        entries: list[Entry] = []
        if not self._chain.sequence:
            entries.append(self._head(now_ms))
        self._given = min(BATCH_EVENTS_MAX, len(self._waiting))
        if self._lost:
            entries.append(self._chain.loss(self._lost, now_ms))
            self._lost = 0
        for _ in range(self._given):
            uid = f"{self._chain.source}-{self._chain.sequence}"
            tally = self._waiting.popleft()
            self.told[kind_of(tally.happening)] += tally.times
            if isinstance(tally.happening, Denied):
                self._count_refusal(tally.happening.principal)
            entries.append(self._chain.event(event_of(tally, uid), now_ms))
        if is_last and not self._waiting:
            entries.append(self._chain.end(now_ms))
        elif abs(now_ms - self._head_ms) >= HEAD_MS:
            entries.append(self._head(now_ms))
        return entries

    def _count_refusal(self, principal: str) -> None:
        if principal not in self.refusal_events and len(self.refusal_events) > PRINCIPALS_MAX:
            principal = OTHER_PRINCIPALS
        self.refusal_events[principal] = self.refusal_events.get(principal, 0) + 1

    def _head(self, now_ms: int) -> Entry:
        self._head_ms = now_ms
        return self._chain.head(now_ms)

    def written(self) -> None:
        """Give back the room of the last batch: the topic has taken it."""
        self._given = 0
        self._look()
