"""Serves fetches: reads, and where there is too little waits for the partitions to move and reads once more.

    Poll ──> read ──> enough, or not to be kept waiting ──> Reading
               └────> `poll.waiter` ──> `read_again` ──────> Reading

A fetch of very many partitions is read in slices. Whoever calls turns requests into polls and readings into answers.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.interfaces import Clock
from kavka_broker.loop.slices import Slices
from kavka_broker.loop.timers import Timers
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.follower_updates import Feed
from kavka_broker.replica.leading.purgatory import FetchWaiter
from kavka_broker.replica.serving.fetch_sessions import FetchContext, FetchSessions
from kavka_broker.replica.serving.pending_fetch import Follower, Poll, Reading, with_news
from kavka_broker.replica.serving.reader import Reader

UNKNOWN_MAX: Final = 1_000
"""A fetch without a session that names more partitions that do not exist waits for nothing: what it waits with is kept
nowhere else, takes 250 bytes for each, and needs no right.
"""


class Fetches:
    """The fetches of this broker, and their `sessions`."""

    def __init__(
        self,
        node_id: int,
        sessions: FetchSessions,
        replicas: ReplicaManager,
        metadata: Metadata,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.sessions = sessions
        self._reader = Reader(node_id, replicas, metadata)
        self._replicas = replicas
        self._clock = clock
        self._timers = timers

    def feed(self, poll: Poll, follower: Follower, on_lost: list[Callable[[], None]] | None) -> None:
        """Make `poll` a follower's, which reads the partitions that it names and those with news. Its session
        begins at once, and ends with its connection, which calls `on_lost`.
        """
        self._replicas.heard_from(follower.broker_id)
        self.open(poll.context)
        poll.follower, poll.feed = follower, self._feed_of(poll.context, on_lost)
        poll.partitions = with_news(poll.partitions, poll.feed)

    def open(self, context: FetchContext) -> None:
        """Open the session that was asked for: the answer now names it to the client."""
        self.sessions.open(context, self._clock.monotonic_ms())

    def _feed_of(self, context: FetchContext, on_lost: list[Callable[[], None]] | None) -> Feed:
        session = context.session
        if session is None:
            return Feed()
        if session.feed is None:
            session.feed = Feed()
            if on_lost is not None:
                end = partial(self.sessions.drop, session.session_id)
                on_lost.append(end)
                session.feed.on_close = partial(on_lost.remove, end)
        return session.feed

    def read(self, poll: Poll) -> Reading | None:
        """Return the answer's partitions; None where `poll.waiter` tells when to read again."""
        reading = poll.begun()
        self._reader.read(poll.partitions, poll, reading)
        missing_bytes = poll.needed_bytes - reading.size_bytes
        has_nobody = not reading.watched and poll.feed is None and not poll.is_withheld
        if missing_bytes <= 0 or reading.is_due or poll.wait_ms <= 0 or has_nobody:
            return reading
        if poll.feed is None:
            lists = [partition.watched(stable_only=poll.is_committed_only) for partition in reading.watched]
        else:
            lists = [poll.feed.waiters]
        poll.waiter = FetchWaiter(lists, missing_bytes, poll.wait_ms, self._timers)
        return None

    def read_again(self, poll: Poll) -> Reading:
        """Read again after the wait."""
        poll.look_again()
        reading = poll.begun()
        self._reader.read(poll.partitions, poll, reading)
        return reading

    def read_wide(self, poll: Poll, slices: Slices) -> Awaitable[Reading]:
        """Read as `read` and `read_again` do, in slices. News counts from now on."""
        if poll.needed_bytes > 0 and poll.wait_ms > 0:
            lists = [] if poll.feed is None else [poll.feed.waiters]
            poll.waiter = FetchWaiter(lists, poll.needed_bytes, poll.wait_ms, self._timers)
        return self._read_in_turn(poll, slices)

    async def _read_in_turn(self, poll: Poll, slices: Slices) -> Reading:
        try:
            reading = await slices.whole(self._reader.read_in_slices(poll, watches=True))
            if poll.waiter is not None and _must_wait(reading, poll, poll.waiter):
                del reading  # it is not answered, and large
                if poll.on_wait is not None:
                    poll.on_wait()
                await poll.waiter.future
                poll.look_again()
                reading = await slices.whole(self._reader.read_in_slices(poll, watches=False))
        finally:
            if poll.waiter is not None:
                poll.waiter.give_up()
        return reading


def _must_wait(reading: Reading, poll: Poll, waiter: FetchWaiter) -> bool:
    if poll.context.session is None and reading.unknown_count > UNKNOWN_MAX:
        return False
    waits = waiter.is_watching or poll.is_withheld
    return waits and not reading.is_due and reading.size_bytes < poll.needed_bytes
