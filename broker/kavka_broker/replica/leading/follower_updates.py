"""The partitions that have something new for one follower, so that its fetch looks at those alone.

A broker that leads a thousand partitions of which one is written to must not look at a thousand when a follower of
theirs fetches. So partitions say what has happened to them: each knows the feeds of its followers, and puts itself on
the list of news. A fetch looks at what it names itself and at the news, and nothing else.

The feed lives as long as the fetch session that it belongs to; a follower without a session gets one for a single
fetch.
"""

from collections.abc import Callable
from typing import Protocol

from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.leading.purgatory import FetchWaiter


class Listeners(Protocol):
    """Those that listen to a partition."""

    feeds: "dict[Feed, SessionPartition]"


class Feed:
    """News of partitions for one follower, in the order in which they came."""

    __slots__ = ("_is_closed", "_sources", "news", "on_close", "waiters")

    def __init__(self) -> None:
        self.on_close: Callable[[], None] | None = None
        self.news: dict[SessionPartition, None] = {}
        self.waiters: list[FetchWaiter] = []  # the fetch that waits for news, if there is one
        self._is_closed = False
        self._sources: dict[SessionPartition, Listeners] = {}

    def listen(self, source: Listeners, wanted: SessionPartition) -> None:
        """Listen to `source` from now on, unless the session has ended while it was read."""
        if self._is_closed:
            return
        self._sources[wanted] = source
        source.feeds[self] = wanted

    def forget(self, wanted: SessionPartition) -> None:
        """Forget a partition that the follower gives up."""
        self.news.pop(wanted, None)
        source = self._sources.pop(wanted, None)
        if source is not None and source.feeds.get(self) is wanted:
            del source.feeds[self]

    def close(self) -> None:
        self._is_closed = True
        for wanted in list(self._sources):
            self.forget(wanted)
        self.news.clear()
        on_close, self.on_close = self.on_close, None
        if on_close is not None:
            on_close()

    # --- what partitions say ------------------------------------------------------------------------------------

    def grown(self, wanted: SessionPartition, size_bytes: int) -> None:
        """Note that the partition has more to read."""
        self.news[wanted] = None
        for waiter in self.waiters:
            waiter.progressed(size_bytes)

    def moved(self, wanted: SessionPartition) -> None:
        """Note a change that can wait for the next answer."""
        self.news[wanted] = None

    def changed(self, wanted: SessionPartition) -> None:
        """Note a change that must not wait."""
        self.news[wanted] = None
        for waiter in self.waiters:
            waiter.interrupt()
