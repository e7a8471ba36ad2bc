"""Requests that wait for one partition: fetches of consumers, feeds of followers, and answers that rest on offsets."""

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.leading.follower_updates import Feed
from kavka_broker.replica.leading.purgatory import FetchWaiter, OffsetWaiters


class PartitionWaiters:
    """The waiters of a partition, each kind of which is woken by an event of its own."""

    __slots__ = (
        "_is_held_back",
        "_stable_offset",
        "committed",
        "feeds",
        "fetches",
        "stable_fetches",
        "synced",
        "trimmed",
    )

    def __init__(self) -> None:
        self.fetches: list[FetchWaiter] = []  # woken by the high watermark
        self.stable_fetches: list[FetchWaiter] = []  # woken by the last stable offset
        self.feeds: dict[Feed, SessionPartition] = {}  # of the followers, which wait for the end of the log
        self.committed = OffsetWaiters()  # for the high watermark
        self.synced = OffsetWaiters()  # for the log's `answerable_end`
        self.trimmed = OffsetWaiters()  # for the low watermark
        self._stable_offset = 0  # the last stable offset when its fetches were looked at last
        self._is_held_back = False  # whether it was below the high watermark

    def interrupt(self) -> None:
        """Wake every fetch, also that of a follower, to look again."""
        self.interrupt_fetches()
        self.tell_followers()

    def interrupt_fetches(self) -> None:
        """Wake every fetch of a consumer to look again."""
        for fetch in [*self.fetches, *self.stable_fetches]:
            fetch.interrupt()

    def tell_followers(self) -> None:
        """Tell followers of a change that must not wait."""
        for feed, wanted in self.feeds.items():
            feed.changed(wanted)

    def fail(self, code: ErrorCode) -> None:
        """Fail every answer that rests on an offset."""
        for waiters in (self.committed, self.synced, self.trimmed):
            waiters.fail(BrokerError(code))

    def progressed(self, size_bytes: int) -> None:
        """Count about that many bytes more that are committed."""
        for fetch in list(self.fetches):
            fetch.progressed(size_bytes)

    def stable_progressed(self, size_bytes: int, stable_offset: int, high_watermark: int) -> None:
        """Count about that many bytes more below the high watermark, where the last stable offset has moved."""
        before, was_held_back = self._stable_offset, self._is_held_back
        self.note_stable(stable_offset, high_watermark)
        if stable_offset == before:
            return
        for fetch in list(self.stable_fetches):
            if was_held_back or self._is_held_back:
                fetch.interrupt()  # the bytes that a marker has made stable are not counted
            else:
                fetch.progressed(size_bytes)

    def note_stable(self, stable_offset: int, high_watermark: int) -> None:
        """Note the last stable offset that fetches look at now: they wait for the next one."""
        self._stable_offset = stable_offset
        self._is_held_back = stable_offset < high_watermark
