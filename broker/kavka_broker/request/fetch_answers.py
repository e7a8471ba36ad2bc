"""The answer of a fetch, from what was read: the quota's verdict, the session's bookkeeping, and who leads instead."""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.metadata.image.leader_hint import endpoint_of, leader_of
from kavka_broker.loop.slices import Cost, Work, at_once
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.quotas.client_quotas import FETCH
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.serving.pending_fetch import Poll, Reading
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.throttling import throttle
from kavka_broker.request.topic_quota import charge_fetched
from kavka_broker.request.topic_read_usage import count_read

ADDRESSES_SINCE: Final = 16
NAMES_LEADER_FROM: Final = 12  # the version that names the leader in a tagged field
MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
TOLD_TOGETHER: Final = 25


Topics = dict[bytes | str, FetchableTopicResponse]


def answer(reading: Reading, poll: Poll, broker: Broker, client: Client) -> FetchResponse:
    """The response: an empty one with `throttle_time_ms` for a client over its quota, otherwise with the news."""
    refusal = throttled(reading, poll, broker, client)
    if refusal is not None:
        return refusal
    if poll.follower is None and broker.quotas.fetched.limited:
        at_once(charge_fetched(reading.served, broker, client))
    if poll.follower is None and broker.use is not None:
        at_once(count_read(reading.served, broker, client))
    topics: Topics = {}
    leaders = tell(reading.served, topics, poll, broker, client)
    return told(topics, leaders, poll, broker, client)


def answer_in_slices(reading: Reading, poll: Poll, broker: Broker, client: Client) -> Work[FetchResponse]:
    """As `answer`, for very many partitions."""
    refusal = throttled(reading, poll, broker, client)
    if refusal is not None:
        return refusal
    if poll.follower is None:
        yield from charge_fetched(reading.served, broker, client)
        yield from count_read(reading.served, broker, client)
    topics: Topics = {}
    leaders: dict[int, None] = {}
    cost = Cost()
    for start in range(0, len(reading.served), TOLD_TOGETHER):
        leaders |= tell(reading.served[start : start + TOLD_TOGETHER], topics, poll, broker, client)
        if cost.add(2 * TOLD_TOGETHER):
            yield
    return told(topics, leaders, poll, broker, client)


def throttled(reading: Reading, poll: Poll, broker: Broker, client: Client) -> FetchResponse | None:
    """The empty response to a client over its quota; otherwise None, and the requested session begins."""
    if poll.follower is not None:
        poll.end()
        return None
    now_ms = int(broker.clock.monotonic_ms())
    throttle_time_ms = broker.quotas.fetch(client.user, client.client_id, reading.size_bytes, now_ms)
    if not throttle_time_ms:
        if poll.context.asked_for is not None:
            broker.fetches.open(poll.context)
        return None
    throttle(client, broker, FETCH, throttle_time_ms, now_ms)
    return FetchResponse(throttle_time_ms, 0, poll.context.session_id)


def tell(
    served: Iterable[tuple[SessionPartition, PartitionData]], topics: Topics, poll: Poll, broker: Broker, client: Client
) -> dict[int, None]:
    """Add changed partitions to `topics`. Returns the leaders of partitions that have moved, each once."""
    leaders: dict[int, None] = {}
    for asked, data in served:
        if not poll.context.tells(asked, data):
            continue
        key = asked.topic
        if data.error_code in MOVED and client.version >= NAMES_LEADER_FROM:
            data.current_leader = LeaderIdAndEpoch(*leader_of(key, data.partition_index, broker.metadata))
            leaders[data.current_leader.leader_id] = None
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = fetched_topic(key)
        topic.partitions.append(data)
    return leaders


def told(topics: Topics, leaders: Iterable[int], poll: Poll, broker: Broker, client: Client) -> FetchResponse:
    response = FetchResponse(0, 0, poll.context.session_id, list(topics.values()))
    if client.version >= ADDRESSES_SINCE:
        for leader in leaders:
            response.node_endpoints += endpoint_of(leader, client.listener, broker.metadata, NodeEndpoint)
    return response


def fetched_topic(key: bytes | str) -> FetchableTopicResponse:
    return FetchableTopicResponse("", key) if isinstance(key, bytes) else FetchableTopicResponse(key, ZERO)
