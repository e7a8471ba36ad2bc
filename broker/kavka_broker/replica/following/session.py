"""The follower's side of a fetch session (KIP-227): the leader remembers the partitions, a fetch names what changed.

The session is only a saving. Whenever the two may disagree (a lost connection, an answer that says so), the next fetch
names everything and begins a new one.
"""

from collections.abc import Iterable
from itertools import groupby

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.fetch_epochs import EPOCH_NEW, NO_SESSION, next_epoch
from kavka_broker.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.replica.leading.partition import Partition

Key = tuple[bytes, int]  # topic id, index
NEVER_SENT = -1

SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)


class Followed:
    """A partition that is fetched from a leader, at one leader epoch."""

    __slots__ = ("failures", "is_asleep", "key", "leader_epoch", "partition", "sent_in", "sent_offset")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: Key = (partition.topic_id, partition.index)
        self.leader_epoch = partition.leader_epoch
        self.sent_offset = NEVER_SENT  # the offset that the leader was asked for last
        self.sent_in = 0  # the number of that fetch: answers to earlier ones are not about this position
        self.is_asleep = False  # not fetched for now
        self.failures = 0  # in a row

    @property
    def is_current(self) -> bool:
        """Whether the partition still follows, at this leader epoch."""
        return not self.partition.is_leader and self.partition.leader_epoch == self.leader_epoch

    @property
    def is_overtaken(self) -> bool:
        """Whether this leader, at this epoch, has brought records since the partition was last named in a fetch."""
        return self.is_current and NEVER_SENT < self.sent_offset < self.partition.log.log_end_offset


class FollowerSession:
    """A fetch session with one leader."""

    def __init__(self, partition_bytes_max: int) -> None:
        self._partition_bytes_max = partition_bytes_max
        self._session_id = NO_SESSION
        self._epoch = EPOCH_NEW
        self.fetches = 0  # fetches sent so far

    @property
    def is_incremental(self) -> bool:
        return self._epoch != EPOCH_NEW

    def fill(
        self,
        request: FetchRequest,
        wanted: Iterable[Followed],
        changed: Iterable[Followed],
        given_up: Iterable[Followed],
    ) -> None:
        """Name partitions in `request`: all, or only those that are new since the last fetch."""
        self.fetches += 1
        request.session_id, request.session_epoch = self._session_id, self._epoch
        if not self.is_incremental:
            request.topics = self._topics(wanted)
            return
        request.topics = self._topics(changed)
        request.forgotten_topics_data = [
            ForgottenTopic(followed.partition.topic, followed.key[0], [followed.key[1]]) for followed in given_up
        ]
        self._epoch = next_epoch(self._epoch)

    def answered(self, response: FetchResponse, *, was_incremental: bool) -> bool:
        """Take note of the session's id; False for an error of the session: the next fetch names all partitions."""
        if response.error_code != ErrorCode.NONE:
            if response.error_code not in SESSION_ERRORS:
                self._session_id = NO_SESSION
            self._epoch = EPOCH_NEW
            return False
        if not was_incremental:
            self._session_id = response.session_id
            self._epoch = EPOCH_NEW if response.session_id == NO_SESSION else 1
        return True

    def lost(self) -> None:
        """Begin a new session: the leader's memory is unknown. The old id is named, so that the leader forgets it."""
        self._epoch = EPOCH_NEW

    def _topics(self, followed: Iterable[Followed]) -> list[FetchTopic]:
        topics = []
        for topic_id, group in groupby(followed, key=lambda followed: followed.key[0]):
            members = list(group)
            partitions = [self._position(followed) for followed in members]
            topics.append(FetchTopic(members[0].partition.topic, topic_id, partitions))
        return topics

    def _position(self, followed: Followed) -> FetchPartition:
        log = followed.partition.log
        followed.sent_offset, followed.sent_in = log.log_end_offset, self.fetches
        return FetchPartition(
            followed.key[1],
            followed.leader_epoch,
            log.log_end_offset,
            log.epochs.latest,
            log.log_start_offset,
            self._partition_bytes_max,
        )


def fetch_request(broker_id: int, broker_epoch: int, *, wait_ms: int, bytes_min: int, bytes_max: int) -> FetchRequest:
    """Return a follower's fetch that names nothing yet. From version 15 on its epoch proves the incarnation."""
    return FetchRequest(
        replica_state=ReplicaState(broker_id, broker_epoch),
        max_wait_ms=wait_ms,
        min_bytes=bytes_min,
        max_bytes=bytes_max,
    )
