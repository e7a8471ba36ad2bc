"""What the members of a share group were given and said, all together, and what of it cannot be (H1).

A member holds a record from when it asked for it until it says what becomes of it, until its session has ended, or
until its lock may be over by the fastest clock. Where another broker leads, or the same one has read the state again,
records that were held are delivered once more: what was not written down is not known there.

| anomaly | meaning |
|---|---|
| settled-again | a leader by the newest image delivers a record whose acceptance or rejection was acknowledged before |
| held-twice | a record is delivered while another member holds it, and nothing has ended that |
| taken-away | a member's acceptance of a record is taken that another member holds |
| count-fell | a record is delivered for the nth time, and was before, or was released after its nth delivery |
| forgotten | at the end a record was not delivered again that nobody accepted or rejected |
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.sim.holdings import Held, held_text

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
CLOCK_RATE_MAX: Final = 1.1  # of a broker whose clock drifts
DELIVERIES_MAX: Final = 10

Key = tuple[Held, int]
"""A partition, and an offset."""


@dataclass(frozen=True, slots=True)
class Source:
    """What gave records out: the leader's state of the share partition, and the session of the member there."""

    window: Any
    session: Any

    def is_same(self, other: "Source") -> bool:
        return self.window is other.window and self.session is other.session


@dataclass(slots=True)
class Delivery:
    """The last delivery of a record that a member has been told of. `source` is None where that is not known."""

    member: str
    count: int
    asked: float
    told: float
    source: Source | None
    is_given_up: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A fetch of a member: who asked when, what gave the answer, and whether that led by the newest image all the time.

    A leader that is cut off gives out for a while what its successor has settled, as in Apache Kafka; what is said of
    it there is fenced.
    """

    member: str
    place: Held
    asked: float
    told: float
    source: Source | None
    is_current: bool = True


def is_newer(fetch: Asked, count: int, before: Delivery) -> bool:
    """Whether a record was delivered by this fetch after another delivery. Of one leader's state counts say so: a fetch
    may wait, and a lock be renewed since.
    """
    if fetch.source is not None and before.source is not None and fetch.source.window is before.source.window:
        return count > before.count or (count == before.count and before.asked <= fetch.asked)
    return before.asked <= fetch.asked


class Deliveries:
    """One group as its members see it. `source_of` says what would serve a member's request at present."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.objected: Callable[[str], None] = lambda problem: None
        self.now: Callable[[], float] = lambda: 0.0
        self.is_open: Callable[[Delivery], bool] = lambda delivery: False  # whether its session goes on
        self.lock_seconds = 0.0
        self.deliveries: dict[Key, Delivery] = {}
        self.settled: dict[Key, float] = {}  # when the acceptance or rejection was acknowledged
        self.released: dict[Key, tuple[float, int]] = {}  # when that was acknowledged, and after how many deliveries
        self.ended: set[Key] = set()  # an acceptance or rejection was sent, whatever became of it
        self.unanswered: dict[Held, int] = {}  # fetches whose answer may have been lost
        self.told_epoch = 0  # the latest that any member was told by a coordinator whose word counts
        self.heartbeats = self.acquired = self.accepted = self.redelivered = self.rejected = self.renewed = (
            self.grabbed
        ) = 0

    def object(self, problem: str) -> None:
        self.problems.append(problem)
        self.objected(problem)

    def acquires(self, fetch: Asked, offsets: Iterable[int], count: int) -> None:
        """A member has got records, each for the nth time."""
        for offset in offsets:
            key = fetch.place, offset
            self.acquired += 1
            self.redelivered += count > 1
            for problem in self._amiss(fetch, key, count):
                self.object(f"{problem}: {fetch.member} was given offset {offset} of {held_text(fetch.place)}")
            before = self.deliveries.get(key)
            if before is None or is_newer(fetch, count, before):
                self.deliveries[key] = Delivery(fetch.member, count, fetch.asked, fetch.told, fetch.source)

    def _amiss(self, fetch: Asked, key: Key, count: int) -> Iterator[str]:
        if fetch.is_current and self.settled.get(key, fetch.asked) < fetch.asked:
            yield "settled-again"
        released_at, released_count = self.released.get(key, (fetch.asked, 0))
        if fetch.is_current and released_at < fetch.asked and count <= released_count:
            yield f"count-fell (to {count}, was released after {released_count})"
        before = self.deliveries.get(key)
        if before is None or before.source is None or fetch.source is None:
            return
        if before.source.window is not fetch.source.window:
            return
        if before.told < fetch.asked and count <= before.count:
            yield f"count-fell (to {count}, was {before.count} at the same leader)"
        ends = before.asked + self.lock_seconds / CLOCK_RATE_MAX
        is_later = count > before.count or before.told < fetch.asked  # otherwise the answer itself was late
        is_other = is_later and before.member != fetch.member and not before.is_given_up
        if is_other and fetch.told < ends and self.is_open(before):
            yield f"held-twice ({before.member} has it since {before.asked:.3f})"

    def says(self, member: str, place: Held, kinds: dict[int, int]) -> None:
        """A member says what becomes of records; the answer is yet to come."""
        for offset, kind in kinds.items():
            delivery = self.deliveries.get((place, offset))
            if delivery is not None and delivery.member == member and kind != RENEW:
                delivery.is_given_up = True
            if kind in (ACCEPT, REJECT):
                self.ended.add((place, offset))

    def held_by_others(self, member: str, place: Held) -> list[int]:
        """Return the offsets of records that other members have, as far as the members know."""
        return sorted(
            offset
            for (where, offset), delivery in self.deliveries.items()
            if where == place and delivery.member != member and not delivery.is_given_up
        )

    def takes(self, member: str, place: Held, offsets: Iterable[int], said: float, window: Any) -> None:
        """A member was told that its word on records of others was taken. What the group has left behind may be."""
        now = self.now()
        for offset in offsets:
            delivery = self.deliveries[place, offset]
            is_certain = delivery.source is not None and delivery.source.window is window and delivery.told < said
            ends = delivery.asked + self.lock_seconds / CLOCK_RATE_MAX
            if is_certain and not delivery.is_given_up and now < ends and self.is_open(delivery):
                self.object(
                    f"taken-away: {member} accepted offset {offset} of {held_text(place)} for {delivery.member}"
                )

    def is_answered(self, place: Held, kinds: dict[int, int], counts: dict[int, int], said: float, now: float) -> None:
        """All of what a member said then was taken. `counts` has how often each record was delivered to it."""
        for offset, kind in kinds.items():
            key = place, offset
            if kind in (ACCEPT, REJECT):
                self.settled.setdefault(key, now)
                self.accepted += kind == ACCEPT
                self.rejected += kind == REJECT
            elif kind == RELEASE:
                self.released[key] = now, counts[offset]
            else:
                self.renewed += 1
                delivery = self.deliveries.get(key)
                if delivery is not None and not delivery.is_given_up:
                    delivery.asked = said

    def is_unanswered(self, place: Held) -> None:
        """Nobody knows what a fetch has acquired."""
        self.unanswered[place] = self.unanswered.get(place, 0) + 1

    def forgotten(self, written: Iterable[Key]) -> Iterator[str]:
        """Records that are done at the end, though they had deliveries left."""
        for key in written:
            delivery = self.deliveries.get(key)
            count = 0 if delivery is None else delivery.count
            if key not in self.ended and count + self.unanswered.get(key[0], 0) < DELIVERIES_MAX:
                yield f"forgotten: offset {key[1]} of {held_text(key[0])} was delivered {count} times, never accepted"
