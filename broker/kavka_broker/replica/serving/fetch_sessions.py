"""Fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.

The broker keeps, for each session, the partitions with the position the client wants next. An incremental fetch
carries changes only, and is answered with partitions that have something to say, and with those that a follower names.
The client proves by an epoch that counts its fetches that both sides agree; where they do not, it is told so and begins
again.

| request session id, epoch | meaning |
|---|---|
| any, -1 | a full fetch without a session; an existing one of that id ends |
| any, 0 | a full fetch that asks for a new session; an existing one of that id ends |
| id, n > 0 | the n-th fetch of this session |

Sessions are bounded by `max.incremental.fetch.session.cache.slots`. When all are taken a new one replaces the one
that was idle longest, if that is two minutes or more; otherwise the client gets no session and goes on without. A
follower, which would have to name a thousand partitions a thousand times a second, takes the place of a consumer. All
together remember at most `PARTITIONS_MAX` partitions, and `NAMES_BYTES_MAX` of names: a client may name any number of
them, as long as it likes, also those that do not exist. A session that would need more ends, and its client goes on
without.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable

from kavka_broker.core.partition.isr_proposal import UNKNOWN_BROKER_EPOCH
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.fetch_epochs import EPOCH_NEW, NO_SESSION, next_epoch
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition, TopicKey
from kavka_broker.replica.leading.follower_updates import Feed
from kavka_broker.replica.serving.partition_data import has_diverged, says_more

EVICTION_MS = 120_000
PARTITIONS_MAX = 1_000_000
NAMES_BYTES_MAX = 128 * 1024 * 1024
"""Of topics that are asked for by name, as clients up to version 12 do; a name counts for each partition."""


class Named(dict[tuple[TopicKey, int], SessionPartition]):
    """Partitions that a request names, and how many bytes the names of their topics take."""

    __slots__ = ("names_bytes",)

    def __init__(self) -> None:
        super().__init__()
        self.names_bytes = 0

    def add(self, topic: TopicKey, position: FetchPartition) -> None:
        """Take a partition in; where the request names one twice, the last position counts."""
        if (topic, position.partition) not in self:
            self.names_bytes += _name_bytes(topic)
        self[topic, position.partition] = SessionPartition(topic, position)


class FetchSession:
    """The partitions of one client, in the order in which they are served. A follower's has a feed."""

    __slots__ = (
        "broker_epoch",
        "epoch",
        "feed",
        "is_of_follower",
        "last_used_ms",
        "names_bytes",
        "partitions",
        "session_id",
        "uses_ids",
    )

    def __init__(self, session_id: int, uses_ids: bool, now_ms: float, *, is_of_follower: bool = False) -> None:
        self.session_id = session_id
        self.is_of_follower = is_of_follower
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.epoch = 1
        self.uses_ids = uses_ids
        self.last_used_ms = now_ms
        self.feed: Feed | None = None
        self.names_bytes = 0  # of the topics of `partitions`
        self.partitions: OrderedDict[tuple[TopicKey, int], SessionPartition] = OrderedDict()

    def update(self, request: FetchRequest, prepared: Named | None = None) -> list[SessionPartition]:
        """Add and move the partitions that the request names, which are returned; forget those it gives up."""
        partitions = self.partitions
        named: list[SessionPartition] = []
        for place, asked in (prepared or {}).items():
            if (known := partitions.get(place)) is None:
                known = self._add(place, asked)
            known.ask_again(asked.position, is_of_follower=self.is_of_follower)
            named.append(known)
        for topic, position in positions(request) if prepared is None else ():
            there = partitions.get((topic, position.partition))
            if there is None:
                there = self._add((topic, position.partition), SessionPartition(topic, position))
            else:
                there.ask_again(position, is_of_follower=self.is_of_follower)
            named.append(there)
        for forgotten in request.forgotten_topics_data:
            key = key_of(forgotten)
            for index in forgotten.partitions:
                gone = partitions.pop((key, index), None)
                if gone is not None:
                    self.names_bytes -= _name_bytes(gone.topic)
                    if self.feed is not None:
                        self.feed.forget(gone)
        return named

    def _add(self, place: tuple[TopicKey, int], asked: SessionPartition) -> SessionPartition:
        self.partitions[place] = asked
        self.names_bytes += _name_bytes(place[0])
        return asked

    def takes_as(self, broker_epoch: int) -> bool:
        """Whether the follower asks as the same incarnation as before. A broker that registers again goes on with its
        sessions: leaders have to get the new epoch for each partition, otherwise the fetch would not count.
        """
        before, self.broker_epoch = self.broker_epoch, broker_epoch
        return before == broker_epoch

    def close(self) -> None:
        if self.feed is not None:
            self.feed.close()

    def serve_last(self, partition: SessionPartition) -> None:
        """Serve the partition last next time: it was served now."""
        key = partition.topic, partition.index
        if key in self.partitions:
            self.partitions.move_to_end(key)


class FetchContext:
    """One fetch: the partitions to look at, and whether unchanged ones are left out of the answer.

    `asked_for` is the session that its client asks for, until it is opened.
    """

    __slots__ = ("asked_for", "is_incremental", "partitions", "session")

    def __init__(
        self, partitions: Iterable[SessionPartition], session: FetchSession | None, *, is_incremental: bool
    ) -> None:
        self.partitions = list(partitions)
        self.session = session
        self.asked_for: FetchSession | None = None
        self.is_incremental = is_incremental

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.session_id

    def tells(self, asked: SessionPartition, data: PartitionData) -> bool:
        """Whether the client is told of the partition; then the session remembers what it was told."""
        # A follower that is to cut its log first takes nothing else from the answer, and has to be told again.
        is_new = asked.told(-1 if has_diverged(data) else data.high_watermark, data.log_start_offset)
        has_records = bool(data.records)
        if has_records and self.session is not None and self.session.feed is None:
            self.session.serve_last(asked)
        return has_records or is_new or not self.is_incremental or says_more(data)


class FetchSessions:
    """All fetch sessions of this broker, the least recently used first. `next_id` gives fresh positive int32 values."""

    def __init__(
        self,
        sessions_max: int,
        next_id: Callable[[], int],
        partitions_max: int = PARTITIONS_MAX,
        names_bytes_max: int = NAMES_BYTES_MAX,
    ) -> None:
        self.sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._sessions_max = sessions_max
        self._next_id = next_id
        self._partitions_max = partitions_max
        self._names_bytes_max = names_bytes_max
        self.evictions = 0

    def __len__(self) -> int:
        return len(self.sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self.sessions.values())

    @property
    def names_bytes(self) -> int:
        """The bytes of names that sessions remember."""
        return sum(session.names_bytes for session in self.sessions.values())

    def enter(
        self, request: FetchRequest, uses_ids: bool, now_ms: float, prepared: Named | None = None
    ) -> FetchContext:
        """Return the context of this fetch; `prepared` is what it names, if that was made before. Raises
        FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH and kin.

        A new session takes its place in `open`.
        """
        if request.session_epoch > EPOCH_NEW:
            return self._continue(request, uses_ids, now_ms, prepared)
        if request.session_id != NO_SESSION:
            self.drop(request.session_id)
        wanted = named_by(request) if prepared is None else prepared
        context = FetchContext(wanted.values(), None, is_incremental=False)
        if request.session_epoch == EPOCH_NEW and wanted:
            is_of_follower = request.replica_state.replica_id >= 0 or request.replica_id >= 0
            context.asked_for = FetchSession(NO_SESSION, uses_ids, now_ms, is_of_follower=is_of_follower)
            context.asked_for.broker_epoch = request.replica_state.replica_epoch
            context.asked_for.partitions.update(wanted)
            context.asked_for.names_bytes = wanted.names_bytes
        return context

    def open(self, context: FetchContext, now_ms: float) -> None:
        """Open the session that was asked for, if there is room: called when the answer will name it."""
        session, context.asked_for = context.asked_for, None
        if session is not None and self._has_room(session, now_ms):
            session.session_id = self._fresh_id()
            session.last_used_ms = now_ms
            self.sessions[session.session_id] = context.session = session

    def _continue(self, request: FetchRequest, uses_ids: bool, now_ms: float, prepared: Named | None) -> FetchContext:
        session = self.sessions.get(request.session_id)
        if session is None:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = next_epoch(session.epoch)
        session.last_used_ms = now_ms
        self.sessions.move_to_end(session.session_id)
        partitions, names_bytes = len(session.partitions), session.names_bytes
        named = session.update(request, prepared)
        has_grown = len(session.partitions) > partitions or session.names_bytes > names_bytes
        if has_grown and self._is_too_much():
            self.drop(session.session_id)
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.partitions:
            self.drop(session.session_id)
            return FetchContext((), None, is_incremental=True)
        # A partition that the follower does not name is read when there is news of it.
        is_known = session.takes_as(request.replica_state.replica_epoch)
        looked_at = named if session.feed is not None and is_known else session.partitions.values()
        return FetchContext(looked_at, session, is_incremental=True)

    def drop(self, session_id: int) -> None:
        """End a session, if it exists: its client is gone, or begins again."""
        session = self.sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _is_too_much(self, partitions: int = 0, names_bytes: int = 0) -> bool:
        """Whether sessions would remember more than they may, with so much besides."""
        return (
            self.partition_count + partitions > self._partitions_max
            or self.names_bytes + names_bytes > self._names_bytes_max
        )

    def _has_room(self, session: FetchSession, now_ms: float) -> bool:
        is_of_follower = session.is_of_follower
        if self._is_too_much(len(session.partitions), session.names_bytes):
            return False
        if len(self.sessions) < self._sessions_max:
            return True
        gives_way = self._idle_longest(now_ms, is_of_follower)
        if gives_way is None:
            return False
        self.drop(gives_way.session_id)
        self.evictions += 1
        return True

    def _idle_longest(self, now_ms: float, is_of_follower: bool) -> FetchSession | None:
        for session in self.sessions.values():
            if now_ms - session.last_used_ms >= EVICTION_MS or (is_of_follower and not session.is_of_follower):
                return session
            if not is_of_follower:
                break
        return None

    def _fresh_id(self) -> int:
        session_id = self._next_id()
        while session_id in self.sessions or session_id == NO_SESSION:
            session_id = self._next_id()
        return session_id


def named_by(request: FetchRequest) -> Named:
    """Return the partitions that the request names."""
    named = Named()
    for topic, position in positions(request):
        named.add(topic, position)
    return named


def prepare(request: FetchRequest) -> Work[Named]:
    """As `named_by`, in slices."""
    named = Named()
    cost = Cost()
    for topic, position in positions(request):
        named.add(topic, position)
        if cost.add(1):
            yield
    return named


def key_of(topic: FetchTopic | ForgottenTopic) -> TopicKey:
    """Return the id that the request names, otherwise the name."""
    return topic.topic_id if topic.topic_id != ZERO else topic.topic


def positions(request: FetchRequest) -> Iterable[tuple[TopicKey, FetchPartition]]:
    """Return every partition that the request names, with the topic's id or name."""
    for topic in request.topics:
        key = key_of(topic)
        for partition in topic.partitions:
            yield key, partition


def _name_bytes(topic: TopicKey) -> int:
    """The bytes that a topic's name takes; an id counts with its partition."""
    return sys.getsizeof(topic) if isinstance(topic, str) else 0
