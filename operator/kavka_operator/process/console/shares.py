"""Shares of what the operator does for visitors at a time: one of them has half at most, so that others find room.

A visitor is a user of the API server (`access.Visitors`).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakValueDictionary

from kavka_operator.live_views.watch import Watch
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.process.console.access import RefusedError


def half(whole: int) -> int:
    """The share of one visitor."""
    return max(1, whole // 2)


@dataclass(slots=True)
class Questions:
    """The questions that wait for an answer, or whose answer is not taken yet."""

    questions_max: int
    _asked: Counter[bytes] = field(default_factory=Counter)

    @contextmanager
    def turn(self, visitor: bytes) -> Iterator[None]:
        """Count a question of a visitor meanwhile. Raises RefusedError where too many wait."""
        if len(self) >= self.questions_max or self._asked[visitor] >= half(self.questions_max):
            raise RefusedError(503, "too many questions wait for an answer; try again in a few seconds")
        self._asked[visitor] += 1
        try:
            yield
        finally:
            self._asked[visitor] -= 1
            self._asked = +self._asked

    def __len__(self) -> int:
        return self._asked.total()


class Places:
    """Places for questions that are asked of Kafka at the same time."""

    def __init__(self, count: int) -> None:
        self._all, self._of_one_max = asyncio.Semaphore(count), half(count)
        self._of_one: WeakValueDictionary[bytes, asyncio.Semaphore] = WeakValueDictionary()

    async def take(self, visitor: bytes) -> Callable[[], None]:
        """Wait for a place; returns what gives it back."""
        own = self._of_one.get(visitor)
        if own is None:
            own = self._of_one[visitor] = asyncio.Semaphore(self._of_one_max)
        await own.acquire()
        try:
            await self._all.acquire()
        except asyncio.CancelledError:
            own.release()
            raise
        return partial(_give_back, own, self._all)


def _give_back(*places: asyncio.Semaphore) -> None:
    for place in places:
        place.release()


@dataclass(slots=True)
class Looked:
    """A cluster that is looked into, and the pages that each visitor has open of it."""

    watch: Watch
    last: bytes
    """The visitor who came last: the looks that go on after the last page count for that one."""
    pages: Counter[bytes] = field(default_factory=Counter)

    def is_of(self, visitor: bytes) -> bool:
        """Whether it counts for a visitor."""
        return self.pages[visitor] > 0 if self.pages.total() else self.last == visitor


@dataclass(slots=True)
class Watches:
    """The clusters that are looked into, each while some page shows it and a little longer."""

    make: Callable[[ClusterKey], Watch]
    watches_max: int
    _looked: dict[ClusterKey, Looked] = field(default_factory=dict)

    @contextmanager
    def page(self, cluster: ClusterKey, visitor: bytes) -> Iterator[Watch]:
        """Count a page of a cluster meanwhile; its looks are those of all pages. Raises RefusedError where too many
        clusters are looked into, by all visitors or this one.
        """
        looked = self._of(cluster, visitor)
        looked.pages[visitor] += 1
        looked.last = visitor
        try:
            yield looked.watch
        finally:
            looked.pages[visitor] -= 1
            looked.last = visitor

    async def close(self) -> None:
        """Look no more."""
        for looked in self._looked.values():
            await looked.watch.close()

    def _of(self, cluster: ClusterKey, visitor: bytes) -> Looked:
        kept = {key: of for key, of in self._looked.items() if of.watch.is_running or of.pages.total() > 0}
        self._looked = kept
        known = kept.get(cluster)
        if known is None and len(kept) >= self.watches_max:
            raise _too_many(self.watches_max, "")
        if known is None or not known.is_of(visitor):
            of_one_max = half(self.watches_max)
            if sum(of.is_of(visitor) for of in kept.values()) >= of_one_max:
                raise _too_many(of_one_max, " for this user")
        if known is None:
            known = kept[cluster] = Looked(self.make(cluster), visitor)
        return known


def _too_many(count: int, of_whom: str) -> RefusedError:
    words = f"{count} clusters are looked into already{of_whom}; try again in a few seconds"
    return RefusedError(503, words)
