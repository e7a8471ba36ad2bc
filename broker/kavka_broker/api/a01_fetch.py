"""Fetch (1): read record batches from the partitions on this broker.

- Answered when `min_bytes` can be read, when a partition has an error, or after `max_wait_ms`. A partition that does
  not exist keeps nobody from waiting on the others: its consumer would ask again and again.
- Whole batches; the first one comes even if it is larger than the limits, so that a client can always go on.
- Reads end at the high watermark; with isolation level read_committed at the last stable offset, and the answer names
  the aborted transactions among what it brings.
- Fetch sessions (KIP-227) leave out of the answer what has not changed; the partition that was served goes last.
- A client that fetched at an epoch that has diverged is told where (KIP-595) and gets no records.
- On a controller's listener there is only the metadata log, with rules of its own (`metadata_fetch`).
- A follower reads to the end of the log (`follower_fetch`). A consumer may read from a follower too, below the high
  watermark that the follower knows; with racks the leader sends it there (`read_replica`).
- A client over its quota gets an empty answer with `throttle_time_ms`, and is muted for as long. A full fetch opens no
  session then: the client would not know of it, since it throws an empty full answer away.
Versions: flexible from 12; topic ids from 13.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.follower_fetch import (
    Follower,
    diverging_epoch,
    feed_of,
    follower_of,
    read_as_follower,
    with_news,
)
from kavka_broker.api.leader_hint import endpoint_of, leader_of
from kavka_broker.api.quorum_answers import fitting
from kavka_broker.api.read_replica import RACKS_FROM, preferred_replica, rack_of
from kavka_broker.api.registry import BOTH, FETCH_BYTES_MAX, Postponed, api
from kavka_broker.controller.metadata_fetch import metadata_fetch
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.quotas.client_quotas import FETCH
from kavka_broker.replica.leading.feeds import Feed
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.purgatory import FetchWaiter
from kavka_broker.replica.leading.session_partition import SessionPartition
from kavka_broker.replica.leading.throttles import Throttle
from kavka_broker.replica.serving.fetch_sessions import FetchContext, Named, prepare
from kavka_broker.replica.serving.proving import is_proven
from kavka_broker.slices import Pace, Work
from kavka_broker.storage.log import Chunk

ADDRESSES_SINCE = 16
TOPIC_ID_VERSION = 13
NAMES_LEADER_FROM = 12  # in a tagged field
READ_COMMITTED = 1
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
#: Of partitions: fewer than that are read in one go.
AT_ONCE_MAX = 100
READ_TOGETHER = 25
UNITS_PER_PARTITION = 12  # of a slice
PREPARED_BYTES_MIN = 8 * 1024
UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


Topics = dict[bytes | str, list[PartitionData]]


@dataclass(slots=True)
class Reading:
    """One pass over the partitions of a fetch."""

    served: list[tuple[SessionPartition, PartitionData]]
    watched: list[Partition]
    size_bytes: int = 0
    is_due: bool = False  # something in it must not wait
    leaders: dict[int, None] = field(default_factory=dict)  # which lead instead of this broker


@dataclass(slots=True)
class Fetch:
    """Who fetches what, and how much."""

    context: FetchContext
    partitions: Collection[SessionPartition]  # to look at
    bytes_max: int
    follower: Follower | None
    feed: Feed | None  # what is new for the follower
    is_committed_only: bool
    reads_followers: bool
    names_leader: bool
    rack: str
    has_waited: bool = False


@api(FetchRequest, FetchResponse, versions=(4, 18), on=BOTH, bytes_max=FETCH_BYTES_MAX)
def fetch(
    request: FetchRequest, broker: Broker, client: Client, prepared: Named | None = None
) -> FetchResponse | Awaitable[FetchResponse]:
    if client.role == "controller":
        return fitting(metadata_fetch(request, broker.quorum, client.version), client.version, ADDRESSES_SINCE)
    if prepared is None and client.size_bytes > PREPARED_BYTES_MIN:
        return fetch_prepared(request, broker, client)
    uses_ids, now_ms = client.version >= TOPIC_ID_VERSION, int(broker.clock.monotonic_ms())
    try:
        context = broker.fetch_sessions.enter(request, uses_ids, now_ms, prepared)
    except BrokerError as error:
        return FetchResponse(error_code=error.code)
    wanted = fetch_of(request, context, broker, client, now_ms)
    if len(wanted.partitions) > AT_ONCE_MAX:
        return fetch_in_slices(request, wanted, broker, client)
    reading = begun(wanted)
    read_all(wanted, wanted.partitions, reading, broker)
    missing_bytes = min(request.min_bytes, wanted.bytes_max) - reading.size_bytes
    nobody = not reading.watched and wanted.feed is None
    if missing_bytes <= 0 or reading.is_due or request.max_wait_ms <= 0 or nobody:
        return answer(reading, wanted, broker, client, now_ms)
    waiter = FetchWaiter(waiting_lists(reading, wanted), missing_bytes, request.max_wait_ms, broker.timers)
    postponed = Postponed(waiter.future, partial(answer_again, wanted, broker, client))
    if wanted.feed is None:
        return postponed
    hurries(waiter, client)
    return postponed if context.session is not None else until_answered(postponed, waiter, wanted)


async def fetch_prepared(request: FetchRequest, broker: Broker, client: Client) -> FetchResponse:
    """As `fetch`, once what the request names was made ready in slices."""
    outcome = fetch(request, broker, client, await broker.slices.whole(prepare(request)))
    return outcome if isinstance(outcome, FetchResponse) else await outcome


def fetch_of(request: FetchRequest, context: FetchContext, broker: Broker, client: Client, now_ms: int) -> Fetch:
    follower = follower_of(request)
    bytes_max, feed, partitions = request.max_bytes, None, context.partitions
    if follower is None:
        bytes_max = min(bytes_max, broker.config["fetch.max.bytes"])
        bytes_max = broker.quotas.fetch_clamp(client.user, client.client_id, bytes_max, now_ms)
    else:
        broker.replicas.heard_from(follower.broker_id)
        broker.fetch_sessions.open(context, now_ms)
        feed = feed_of(context, broker.fetch_sessions, client)
        partitions = with_news(partitions, feed)
    return Fetch(
        context,
        partitions,
        bytes_max,
        follower,
        feed,
        is_committed_only=request.isolation_level == READ_COMMITTED,
        reads_followers=follower is None and client.version >= RACKS_FROM,
        names_leader=client.version >= NAMES_LEADER_FROM,
        rack=rack_of(request, broker, client),
    )


def waiting_lists(reading: Reading, wanted: Fetch) -> list[list[FetchWaiter]]:
    """Where the fetch stands that has to wait: with all that was read, or with what is new for its follower."""
    if wanted.feed is not None:
        return [wanted.feed.waiters]
    return [one.watched(stable_only=wanted.is_committed_only) for one in reading.watched]


def hurries(waiter: FetchWaiter, client: Client) -> None:
    """A follower's next request ends the wait of the one before it."""
    client.hurry = waiter.interrupt
    if client.is_hurried:
        waiter.interrupt()


def until_answered(
    answering: Awaitable[FetchResponse], waiter: FetchWaiter | None, wanted: Fetch
) -> Awaitable[FetchResponse]:
    """The answer, behind which nothing waits for news any more: not where its connection ends first either."""
    task, feed = asyncio.ensure_future(answering), wanted.feed
    assert feed is not None

    def end(_: "asyncio.Future[FetchResponse]") -> None:
        if waiter is not None:
            waiter.give_up()
        if wanted.context.session is None:
            feed.close()

    task.add_done_callback(end)
    return task


def answer_again(wanted: Fetch, broker: Broker, client: Client) -> FetchResponse:
    """Read again, behind the wait for enough to read or for the end of `max_wait_ms`."""
    waited(wanted)
    reading = begun(wanted)
    read_all(wanted, wanted.partitions, reading, broker)
    return answer(reading, wanted, broker, client, int(broker.clock.monotonic_ms()))


def waited(wanted: Fetch) -> None:
    """What is new meanwhile is looked at too."""
    wanted.has_waited = True
    if wanted.feed is not None:
        wanted.partitions = with_news(wanted.partitions, wanted.feed)


def fetch_in_slices(request: FetchRequest, wanted: Fetch, broker: Broker, client: Client) -> Awaitable[FetchResponse]:
    """As `fetch` goes on, with so many partitions that the others have their turn in between."""
    client.has_long_answer = True
    needed_bytes = min(request.min_bytes, wanted.bytes_max)
    waiter, lists = None, [] if wanted.feed is None else [wanted.feed.waiters]
    if needed_bytes > 0 and request.max_wait_ms > 0:
        waiter = FetchWaiter(lists, needed_bytes, request.max_wait_ms, broker.timers)
    answering = answer_in_turn(waiter, wanted, needed_bytes, broker, client)
    if wanted.feed is None:
        return answering
    if waiter is not None:
        hurries(waiter, client)
    return until_answered(answering, waiter, wanted)


async def answer_in_turn(
    waiter: FetchWaiter | None, wanted: Fetch, needed_bytes: int, broker: Broker, client: Client
) -> FetchResponse:
    """Read, and where that is too little wait and read again; each in slices."""
    try:
        reading = await broker.slices.whole(read_in_slices(wanted, waiter, broker))
        if waiter is not None and must_wait(reading, needed_bytes, waiter):
            await waiter.future
            waited(wanted)
            reading = await broker.slices.whole(read_in_slices(wanted, None, broker))
    finally:
        if waiter is not None:
            waiter.give_up()
    return await broker.slices.whole(answer_in_slices(reading, wanted, broker, client))


def must_wait(reading: Reading, needed_bytes: int, waiter: FetchWaiter) -> bool:
    return waiter.is_watching and not reading.is_due and reading.size_bytes < needed_bytes


def read_in_slices(fetch: Fetch, waiter: FetchWaiter | None, broker: Broker) -> Work[Reading]:
    """Read them all. The waiter, if there is one, watches each from the moment in which it was read."""
    reading, pace, partitions = begun(fetch), Pace(), list(fetch.partitions)
    for start in range(0, len(partitions), READ_TOGETHER):
        size_bytes, served = reading.size_bytes, len(reading.served)
        read_all(fetch, partitions[start : start + READ_TOGETHER], reading, broker)
        if waiter is not None:
            for partition in reading.watched:
                waiter.watch(partition.watched(stable_only=fetch.is_committed_only))
            waiter.progressed(reading.size_bytes - size_bytes)
        reading.watched.clear()
        if pace.spent(UNITS_PER_PARTITION * (len(reading.served) - served)):
            yield
    return reading


def begun(fetch: Fetch) -> Reading:
    """A pass in which nothing was read so far."""
    # A follower that opens a session gets it at once: only then can it add a partition without waiting for its answer.
    context = fetch.context
    opens = fetch.follower is not None and context.session is not None and not context.is_incremental
    return Reading([], [], is_due=opens)


def read_all(fetch: Fetch, partitions: Iterable[SessionPartition], reading: Reading, broker: Broker) -> None:
    """Read partitions into `reading`."""
    for wanted in partitions:
        try:
            partition = find(wanted, fetch.reads_followers, broker)
            data = read(partition, wanted, fetch, reading, broker)
        except BrokerError as error:
            # Records that are null, not empty, librdkafka cannot read: it would never get to see the error.
            data = PartitionData(wanted.index, error.code, -1, records=b"")
            if error.code in MOVED and fetch.names_leader:
                data.current_leader = LeaderIdAndEpoch(*leader_of(wanted.topic, wanted.index, broker))
                reading.leaders[data.current_leader.leader_id] = None
            # A follower asks for nothing that is not there, or will be in a moment: it is told at once, comes again.
            reading.is_due = reading.is_due or fetch.follower is not None or error.code not in UNKNOWN
        else:
            size_bytes = data_size(data)
            if fetch.feed is None:
                reading.watched.append(partition)
            else:
                fetch.feed.listen(partition, wanted)
                if not size_bytes and wanted.wanted.fetch_offset < partition.log.log_end_offset:
                    fetch.feed.moved(wanted)  # it did not fit this time
            partition.bytes_out += size_bytes
            reading.size_bytes += size_bytes
            reading.is_due = reading.is_due or has_diverged(data) or data.preferred_read_replica >= 0
        reading.served.append((wanted, data))


def find(wanted: SessionPartition, reads_followers: bool, broker: Broker) -> Partition:
    topic = wanted.topic
    if isinstance(topic, bytes):
        known = broker.metadata.topics.by_id(topic)
        if known is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        topic = known.name
    look_up = broker.replicas.replica if reads_followers else broker.replicas.leader
    return look_up(topic, wanted.index, wanted.wanted.current_leader_epoch)


def read(
    partition: Partition, wanted: SessionPartition, fetch: Fetch, reading: Reading, broker: Broker
) -> PartitionData:
    position, bytes_max, at_least_one = wanted.wanted, fetch.bytes_max - reading.size_bytes, not reading.size_bytes
    if fetch.follower is not None:
        throttle = broker.replicas.throttles.of_followers(partition)
        data = feed_follower(partition, wanted, fetch, fetch.follower, bytes_max, at_least_one, throttle)
        # DeleteRecords waits for followers to hear of it.
        reading.is_due = reading.is_due or -1 < wanted.log_start_offset < data.log_start_offset
        return data
    high_watermark = partition.high_watermark
    data = PartitionData(
        wanted.index,
        0,
        high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        aborted_transactions=[] if fetch.is_committed_only else None,
        records=b"",
    )
    if fetch.rack and partition.is_leader:
        elsewhere = preferred_replica(partition, position.fetch_offset, fetch.rack, broker)
        if elsewhere is not None:
            data.preferred_read_replica = elsewhere
            return data
    if position.last_fetched_epoch >= 0:
        diverging = diverging_epoch(partition, position.last_fetched_epoch, position.fetch_offset)
        if diverging is not None:
            data.diverging_epoch = diverging
            return data
    upper_offset = partition.last_stable_offset if fetch.is_committed_only else high_watermark
    if position.fetch_offset == upper_offset:
        return data
    wanted_bytes = max(0, min(position.partition_max_bytes, bytes_max))
    chunk = partition.read(position.fetch_offset, wanted_bytes, upper_offset, at_least_one)
    if not fetch.is_committed_only or is_proven(partition, position.fetch_offset):
        data.records = chunk.parts
        if fetch.is_committed_only and partition.log.has_aborted:
            data.aborted_transactions = aborted_in(partition, position.fetch_offset, chunk)
    return data


def feed_follower(
    partition: Partition,
    wanted: SessionPartition,
    fetch: Fetch,
    follower: Follower,
    bytes_max: int,
    at_least_one: bool,
    throttle: Throttle | None,
) -> PartitionData:
    """What a follower gets; no records where it may not take more for now."""
    if throttle is not None and follower.broker_id not in partition.isr and throttle.is_exceeded:
        bytes_max, at_least_one = 0, False
    data = read_as_follower(partition, wanted, follower, bytes_max, at_least_one, has_waited=fetch.has_waited)
    if throttle is not None:
        throttle.record(data_size(data))
    return data


def aborted_in(partition: Partition, offset: int, chunk: Chunk) -> list[AbortedTransaction]:
    """What of these records its reader has to leave out."""
    aborted = partition.log.aborted_between(offset, chunk.end_offset)
    return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in aborted]


def answer(reading: Reading, fetch: Fetch, broker: Broker, client: Client, now_ms: int) -> FetchResponse:
    """The response, with the session's bookkeeping and the quota's verdict."""
    refusal = throttled(reading, fetch, broker, client, now_ms)
    if refusal is not None:
        return refusal
    topics: Topics = {}
    tell(reading.served, fetch, topics)
    return told([fetched_topic(key, parts) for key, parts in topics.items()], reading, fetch, broker, client)


def answer_in_slices(reading: Reading, fetch: Fetch, broker: Broker, client: Client) -> Work[FetchResponse]:
    """As `answer`."""
    refusal = throttled(reading, fetch, broker, client, int(broker.clock.monotonic_ms()))
    if refusal is not None:
        return refusal
    topics: Topics = {}
    pace = Pace()
    for start in range(0, len(reading.served), READ_TOGETHER):
        tell(reading.served[start : start + READ_TOGETHER], fetch, topics)
        if pace.spent(2 * READ_TOGETHER):
            yield
    fetched = []
    for key, parts in topics.items():
        fetched.append(fetched_topic(key, parts))
        if pace.spent(1):
            yield
    return told(fetched, reading, fetch, broker, client)


def throttled(reading: Reading, fetch: Fetch, broker: Broker, client: Client, now_ms: int) -> FetchResponse | None:
    """The empty answer to a client that is over its quota; else the session begins that it has asked for."""
    context, throttle_time_ms = fetch.context, 0
    if fetch.follower is None:
        throttle_time_ms = broker.quotas.fetch(client.user, client.client_id, reading.size_bytes, now_ms)
    if throttle_time_ms:
        client.throttle(throttle_time_ms, broker.quotas.held(FETCH, client.user, client.client_id, now_ms))
        return FetchResponse(throttle_time_ms, 0, context.session_id)
    broker.fetch_sessions.open(context, now_ms)
    if fetch.feed is not None and context.session is None:
        fetch.feed.close()
    return None


def tell(served: Iterable[tuple[SessionPartition, PartitionData]], fetch: Fetch, topics: Topics) -> None:
    """Put what is news to the client under its topic."""
    context = fetch.context
    for wanted, data in served:
        # One that is to cut its log first takes nothing else from the answer, and has to be told again.
        has_news = wanted.told(-1 if has_diverged(data) else data.high_watermark, data.log_start_offset)
        has_records = bool(data.records)
        if context.session is not None and has_records and fetch.feed is None:
            context.session.serve_last(wanted)
        if has_records or has_news or not context.is_incremental or is_telling(data):
            topics.setdefault(wanted.topic, []).append(data)


def told(
    topics: list[FetchableTopicResponse], reading: Reading, fetch: Fetch, broker: Broker, client: Client
) -> FetchResponse:
    answer = FetchResponse(0, 0, fetch.context.session_id, topics)
    if reading.leaders and client.version >= ADDRESSES_SINCE:
        answer.node_endpoints = [
            one for leader in reading.leaders for one in endpoint_of(leader, client.listener, broker, NodeEndpoint)
        ]
    return answer


def fetched_topic(key: bytes | str, partitions: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(key, bytes):
        return FetchableTopicResponse("", key, partitions)
    return FetchableTopicResponse(key, ZERO, partitions)


def is_telling(data: PartitionData) -> bool:
    """It says more than where the log is."""
    return bool(data.error_code) or has_diverged(data) or data.preferred_read_replica >= 0


def has_diverged(data: PartitionData) -> bool:
    return data.diverging_epoch.end_offset >= 0


def data_size(data: PartitionData) -> int:
    return sum(map(len, data.records)) if isinstance(data.records, list) else 0
