"""A fetch until it is answered: what it asks for, and what a pass over its partitions has read."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.leading.follower_updates import Feed
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.purgatory import FetchWaiter
from kavka_broker.replica.serving.fetch_sessions import FetchContext

#: Partitions that are read in one go; a fetch of more partitions is read in slices.
AT_ONCE_MAX: Final = 100


Refuses = Callable[[str], ErrorCode | None]


class Follower(NamedTuple):
    """The broker that fetches."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class Reading:
    """Partitions' data of one pass over a poll."""

    served: list[tuple[SessionPartition, PartitionData]]
    watched: list[Partition]
    size_bytes: int = 0
    is_due: bool = False  # whether some partition's data must not wait
    unknown_count: int = 0  # partitions that do not exist here
    of_limited: dict[str, int] = field(default_factory=dict)  # bytes of topics whose consumers have a limit


@dataclass(slots=True)
class Poll:
    """A fetch: its client, its partitions, and how long it may wait for `needed_bytes`."""

    context: FetchContext
    partitions: Collection[SessionPartition]  # to be read
    bytes_max: int
    needed_bytes: int
    wait_ms: int
    follower: Follower | None = None
    feed: Feed | None = None  # the partitions that are new for the follower
    is_committed_only: bool = False
    reads_followers: bool = False
    refuses: Refuses | None = None  # why the client may not read a topic; None where it may read all
    is_withheld: bool = False  # what is refused keeps the client waiting, so that it does not ask again at once
    rack: str = ""  # a consumer may be sent to a replica there
    on_wait: Callable[[], None] | None = None  # called before a wide fetch waits
    has_waited: bool = False
    waiter: FetchWaiter | None = None

    @property
    def is_wide(self) -> bool:
        """Whether the fetch is read in slices, so that others have their turn."""
        return len(self.partitions) > AT_ONCE_MAX

    def begun(self) -> Reading:
        """Return a new pass, in which nothing has been read."""
        # A follower that opens a session is answered at once: only then can it add a partition to it.
        context = self.context
        opens = self.follower is not None and context.session is not None and not context.is_incremental
        return Reading([], [], is_due=opens)

    def look_again(self) -> None:
        """Have the next pass read partitions with news since the last pass, too."""
        self.has_waited = True
        if self.feed is not None:
            self.partitions = with_news(self.partitions, self.feed)

    def end(self) -> None:
        """Take the poll off every list: its answer is made, or its connection has ended."""
        if self.waiter is not None:
            self.waiter.give_up()
        if self.feed is not None and self.context.session is None:
            self.feed.close()


def with_news(partitions: Collection[SessionPartition], feed: Feed) -> list[SessionPartition]:
    """Return the named partitions and those with news. Clears the feed's news."""
    news, feed.news = feed.news, {}
    return list(dict.fromkeys([*partitions, *news]))
