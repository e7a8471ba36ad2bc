"""Fetch (1): read record batches from the partitions that this broker leads.

- Answered when `min_bytes` can be read, when a partition has an error, or after `max_wait_ms`. A partition that does
  not exist keeps nobody from waiting on the others: its consumer would ask again and again.
- Whole batches; the first one comes even if it is larger than the limits, so that a client can always go on.
- Reads end at the high watermark, with isolation level read_committed at the last stable offset.
- Fetch sessions (KIP-227) leave out of the answer what has not changed; the partition that was served goes last.
- A client that fetched at an epoch that has diverged is told where (KIP-595) and gets no records.
- A client over its quota gets an empty answer with `throttle_time_ms`, and is muted afterwards.
Versions: flexible from 12; topic ids from 13.
"""

from collections.abc import Awaitable
from dataclasses import dataclass

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import BOTH, api
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.replica.fetch_sessions import FetchContext, SessionPartition
from kavka_broker.replica.partition import Partition
from kavka_broker.replica.purgatory import FetchWaiter

TOPIC_ID_VERSION = 13
READ_COMMITTED = 1
UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass(slots=True)
class Reading:
    """One pass over the partitions of a fetch."""

    served: list[tuple[SessionPartition, PartitionData]]
    watched: list[Partition]
    size_bytes: int = 0
    has_error: bool = False


@api(FetchRequest, FetchResponse, versions=(4, 18), on=BOTH)
def fetch(request: FetchRequest, broker: Broker, client: Client) -> FetchResponse | Awaitable[FetchResponse]:
    uses_ids = client.version >= TOPIC_ID_VERSION
    try:
        context = broker.fetch_sessions.enter(request, uses_ids, broker.clock.monotonic_ms())
    except BrokerError as error:
        return FetchResponse(error_code=error.code)
    bytes_max = min(request.max_bytes, broker.config["fetch.max.bytes"])
    now_ms = int(broker.clock.monotonic_ms())
    bytes_max = broker.quotas.fetch_clamp(client.user, client.client_id, bytes_max, now_ms)
    reading = read_all(context, request, broker, bytes_max)
    missing_bytes = min(request.min_bytes, bytes_max) - reading.size_bytes
    if missing_bytes <= 0 or reading.has_error or request.max_wait_ms <= 0 or not reading.watched:
        return answer(reading, context, request, broker, client)
    # It watches from here on: a coroutine begins later, and what is appended until then would wake nobody.
    waiter = FetchWaiter(reading.watched, missing_bytes, request.max_wait_ms, broker.timers)
    return answer_later(waiter, bytes_max, context, request, broker, client)


async def answer_later(
    waiter: FetchWaiter,
    bytes_max: int,
    context: FetchContext,
    request: FetchRequest,
    broker: Broker,
    client: Client,
) -> FetchResponse:
    """Wait for enough to read or the end of `max_wait_ms`, then read again."""
    await waiter.future
    return answer(read_all(context, request, broker, bytes_max), context, request, broker, client)


def read_all(context: FetchContext, request: FetchRequest, broker: Broker, bytes_max: int) -> Reading:
    reading = Reading([], [])
    is_committed_only = request.isolation_level == READ_COMMITTED
    for wanted in context.partitions:
        try:
            partition = find(wanted, broker)
            data = read(partition, wanted, bytes_max - reading.size_bytes, not reading.size_bytes, is_committed_only)
        except BrokerError as error:
            data = PartitionData(wanted.index, error.code, -1)
            if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                data.current_leader = current_leader(wanted, broker)
            reading.has_error = reading.has_error or error.code not in UNKNOWN
        else:
            reading.watched.append(partition)
            size_bytes = data_size(data)
            partition.bytes_out += size_bytes
            reading.size_bytes += size_bytes
            reading.has_error = reading.has_error or has_diverged(data)
        reading.served.append((wanted, data))
    return reading


def find(wanted: SessionPartition, broker: Broker) -> Partition:
    topic = wanted.topic
    if isinstance(topic, bytes):
        known = broker.metadata.topics.by_id(topic)
        if known is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        topic = known.name
    return broker.replicas.leader(topic, wanted.index)


def read(
    partition: Partition, wanted: SessionPartition, bytes_max: int, at_least_one: bool, is_committed_only: bool
) -> PartitionData:
    position = wanted.wanted
    partition.check_epoch(position.current_leader_epoch)
    high_watermark = partition.high_watermark
    data = PartitionData(
        wanted.index,
        0,
        high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        aborted_transactions=[] if is_committed_only else None,
    )
    if position.last_fetched_epoch >= 0:
        diverging = diverging_epoch(partition, position.last_fetched_epoch, position.fetch_offset)
        if diverging is not None:
            data.diverging_epoch = diverging
            data.records = b""
            return data
    upper_offset = partition.last_stable_offset if is_committed_only else high_watermark
    if position.fetch_offset == upper_offset:
        data.records = b""
        return data
    wanted_bytes = min(position.partition_max_bytes, bytes_max)
    data.records = partition.read(position.fetch_offset, max(wanted_bytes, 0), upper_offset, at_least_one).parts
    return data


def diverging_epoch(partition: Partition, last_fetched_epoch: int, fetch_offset: int) -> EpochEndOffset | None:
    """Where the client's log and ours part, if they do."""
    epoch, end_offset = partition.log.epoch_end_offset(last_fetched_epoch)
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return EpochEndOffset(epoch, end_offset)
    return None


def current_leader(wanted: SessionPartition, broker: Broker) -> LeaderIdAndEpoch:
    topics = broker.metadata.topics
    topic = topics.by_id(wanted.topic) if isinstance(wanted.topic, bytes) else topics.get(wanted.topic)
    if topic is None or wanted.index not in topic.partitions:
        return LeaderIdAndEpoch()
    state = topic.partitions[wanted.index]
    return LeaderIdAndEpoch(state.leader, state.leader_epoch)


def answer(
    reading: Reading, context: FetchContext, request: FetchRequest, broker: Broker, client: Client
) -> FetchResponse:
    """The response, with the session's bookkeeping and the quota's verdict."""
    now_ms = int(broker.clock.monotonic_ms())
    throttle_time_ms = broker.quotas.fetch(client.user, client.client_id, reading.size_bytes, now_ms)
    if throttle_time_ms:
        client.throttle_time_ms = throttle_time_ms
        return FetchResponse(throttle_time_ms, 0, context.session_id)
    topics: dict[bytes | str, list[PartitionData]] = {}
    for wanted, data in reading.served:
        has_news = wanted.told(data.high_watermark, data.log_start_offset)
        has_records = bool(data.records)
        if context.session is not None and has_records:
            context.session.serve_last(wanted)
        if has_records or has_news or data.error_code or not context.is_incremental or has_diverged(data):
            topics.setdefault(wanted.topic, []).append(data)
    return FetchResponse(0, 0, context.session_id, [fetched_topic(key, parts) for key, parts in topics.items()])


def fetched_topic(key: bytes | str, partitions: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(key, bytes):
        return FetchableTopicResponse("", key, partitions)
    return FetchableTopicResponse(key, ZERO, partitions)


def has_diverged(data: PartitionData) -> bool:
    return data.diverging_epoch.end_offset >= 0


def data_size(data: PartitionData) -> int:
    return sum(map(len, data.records)) if isinstance(data.records, list) else 0
