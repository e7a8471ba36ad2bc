"""The answer of a fetch, from what was read: the quota's verdict, the session's bookkeeping, and who leads instead."""

from typing import Final

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.leader_hint import endpoint_of, leader_of
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
from kavka_broker.replica.serving.poll import Poll, Reading
from kavka_broker.slices import Pace, Work

ADDRESSES_SINCE: Final = 16
NAMES_LEADER_FROM: Final = 12  # in a tagged field
MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
TOLD_TOGETHER: Final = 25


def answer(reading: Reading, poll: Poll, broker: Broker, client: Client) -> Work[FetchResponse]:
    """The response: an empty one with `throttle_time_ms` for a client over its quota, otherwise with the news."""
    if poll.follower is None:
        now_ms = int(broker.clock.monotonic_ms())
        throttle_time_ms = broker.quotas.fetch(client.user, client.client_id, reading.size_bytes, now_ms)
        if throttle_time_ms:
            client.throttle(throttle_time_ms, broker.quotas.held(FETCH, client.user, client.client_id, now_ms))
            return FetchResponse(throttle_time_ms, 0, poll.context.session_id)
        broker.fetches.open(poll.context)
    else:
        poll.end()
    topics: dict[bytes | str, list[PartitionData]] = {}
    leaders: dict[int, None] = {}  # who leads instead of this broker, each once
    pace = Pace()
    for start in range(0, len(reading.served), TOLD_TOGETHER):
        for key, data in poll.context.news(reading.served[start : start + TOLD_TOGETHER]):
            if data.error_code in MOVED and client.version >= NAMES_LEADER_FROM:
                data.current_leader = LeaderIdAndEpoch(*leader_of(key, data.partition_index, broker))
                leaders[data.current_leader.leader_id] = None
            topics.setdefault(key, []).append(data)
        if pace.spent(2 * TOLD_TOGETHER):
            yield
    fetched = []
    for key, parts in topics.items():
        fetched.append(fetched_topic(key, parts))
        if pace.spent(1):
            yield
    response = FetchResponse(0, 0, poll.context.session_id, fetched)
    if leaders and client.version >= ADDRESSES_SINCE:
        listener = client.listener
        endpoints = [endpoint_of(leader, listener, broker, NodeEndpoint) for leader in leaders]
        response.node_endpoints = [endpoint for found in endpoints for endpoint in found]
    return response


def fetched_topic(key: bytes | str, partitions: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(key, bytes):
        return FetchableTopicResponse("", key, partitions)
    return FetchableTopicResponse(key, ZERO, partitions)
