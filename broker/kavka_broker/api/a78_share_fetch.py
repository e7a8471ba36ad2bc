"""ShareFetch (78): a member of a share group acquires records, and says what became of others (KIP-932).

- Without share.version 1 it is UNSUPPORTED_VERSION. A request without a group or a member id is INVALID_REQUEST.
- A session names the partitions: epoch 0 opens it, each request has the next epoch, and -1 ends it, as the end of its
  connection does. Records that its member holds are available again then. One request of a session is served at a
  time: another one meanwhile is INVALID_SHARE_SESSION_EPOCH. Beyond group.share.max.share.sessions it is
  SHARE_SESSION_LIMIT_REACHED.
- Records are acquired in batches, for share.record.lock.duration.ms, until there are `max_records`; a batch is divided
  where more records would be in flight than share.partition.max.record.locks. Mode 1 acquires no record more than
  `max_records` (KIP-1206). One that is delivered share.delivery.count.limit times and not accepted is archived.
- Answered when `min_bytes` can be read, when a partition has an error (of 1,000 at most), or after `max_wait_ms`;
  with read_committed nothing behind the last stable offset, and nothing of aborted transactions, which Apache Kafka
  sends and archives too.
- Acknowledgements are taken first, and answered when the share coordinator has them; with `is_renew_ack` nothing is
  fetched (KIP-1222). The first request of a session has none: INVALID_REQUEST.
- A client over its quota gets no records, and its connection is muted.
Versions: flexible; renewed locks and the mode from 2.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from kavka_broker.api.a01_fetch import denial, withholding
from kavka_broker.coordinator.share.share_fetches import Outcome, Refuses, ShareFetch
from kavka_broker.coordinator.share.share_leader import Fetched
from kavka_broker.core.metadata.image.leader_hint import endpoint_of, leader_of
from kavka_broker.core.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSession
from kavka_broker.loop.slices import Cost, Work, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import fetch_response as fetches
from kavka_broker.protocol.messages.share_fetch_request import ShareFetchRequest
from kavka_broker.protocol.messages.share_fetch_response import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kavka_broker.quotas.client_quotas import FETCH
from kavka_broker.request.audit_backpressure import is_mender
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.share_acknowledgements import (
    PARTITION_COST,
    Place,
    begin_all,
    check_member,
    is_served,
    said_in,
    settled,
)
from kavka_broker.request.throttling import throttle
from kavka_broker.request.topic_quota import charge_fetched

STRICT = 1
RENEW_FROM = 2
LIMITED_WAIT_MS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Served:
    """A partition of the answer, as the quotas of topics know those of a fetch."""

    topic: str
    index: int


@api(ShareFetchRequest, ShareFetchResponse, versions=(1, 2), bytes_max=FETCH_BYTES_MAX)
async def share_fetch(request: ShareFetchRequest, broker: Broker, client: Client) -> ShareFetchResponse:
    if not is_served(broker):
        return ShareFetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        key = check_member(request.group_id, request.member_id)
        check(request)
        session = await broker.slices.whole(enter(request, key, broker, client))
    except BrokerError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:  # so that the client does not ask again at once
            await asyncio.sleep(min(max(request.max_wait_ms, 0), LIMITED_WAIT_MS_MAX) / 1000)
        return ShareFetchResponse(error_code=error.code, error_message=error.message or None)
    try:
        return await serve(request, session, broker, client)
    finally:
        session.is_busy = False


async def serve(
    request: ShareFetchRequest, session: ShareSession, broker: Broker, client: Client
) -> ShareFetchResponse:
    """Take what a member says of records, and acquire others for it."""
    refuses = refusal_of(broker, client)
    said = await broker.slices.whole(said_in(request.topics, Cost()))
    begun = await begin_all(session.key, said, refuses, broker, renews=request.is_renew_ack)
    outcome = Outcome()
    if request.share_session_epoch != FINAL_EPOCH and not request.is_renew_ack:
        outcome = await fetch(request, session, refuses, broker, client)
    problems = await settled(begun)
    if request.share_session_epoch == FINAL_EPOCH:
        broker.as_broker.sharing.fetches.leave(session)
    return await broker.slices.whole(answer(request, outcome, problems, broker, client))


def check(request: ShareFetchRequest) -> None:
    """Raises INVALID_REQUEST."""
    has_said = any(partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions)
    if request.share_session_epoch == INITIAL_EPOCH and has_said:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "The first request of a session has no acknowledgements.")
    limits = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
    if request.is_renew_ack and any(limits):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "With is_renew_ack nothing is fetched: all limits are 0.")
    if request.share_acquire_mode not in (0, STRICT):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Acquire mode {request.share_acquire_mode} is unknown.")


def enter(request: ShareFetchRequest, key: SessionKey, broker: Broker, client: Client) -> Work[ShareSession]:
    """Raises BrokerError where the session or its epoch is wrong."""
    cost = Cost()
    added: dict[Place, None] = {}
    forgotten: dict[Place, None] = {}
    for topic in request.topics:
        topic_id = bytes(topic.topic_id)
        for partition in topic.partitions:
            added[topic_id, partition.partition_index] = None
            if cost.add(1):
                yield
        if cost.add(1):
            yield
    for gone in request.forgotten_topics_data:
        topic_id = bytes(gone.topic_id)
        for index in gone.partitions:
            forgotten[topic_id, index] = None
            if cost.add(1):
                yield
        if cost.add(1):
            yield
    sessions = broker.as_broker.sharing.fetches
    if request.share_session_epoch == INITIAL_EPOCH:
        return sessions.open(key, added, None if client.peer is None else client.peer.on_lost)
    return (yield from sessions.resume(key, request.share_session_epoch, added, forgotten))


def refusal_of(broker: Broker, client: Client) -> Refuses | None:
    """Return the question whether the client may read a topic now; None where it may read all."""
    refuses = None if broker.authorizer is None else denial(broker.authorizer, client)
    if broker.is_refusing and not is_mender(broker, client):
        broker.refused["fetch"] += 1
        return withholding(refuses, broker)
    return refuses


async def fetch(
    request: ShareFetchRequest, session: ShareSession, refuses: Refuses | None, broker: Broker, client: Client
) -> Outcome:
    """Acquire records, and charge them to the quotas of the client and of topics."""
    now_ms = int(broker.clock.monotonic_ms())
    if delay_ms := broker.quotas.fetch(client.user, client.client_id, 0, now_ms):
        throttle(client, broker, FETCH, delay_ms, now_ms)
        return Outcome()
    bytes_max = min(max(request.max_bytes, 1), broker.config["fetch.max.bytes"])
    bytes_max = broker.quotas.fetch_clamp(client.user, client.client_id, bytes_max, now_ms)
    wanted = ShareFetch(
        session,
        request.max_records,
        request.share_acquire_mode == STRICT,
        min(request.min_bytes, bytes_max),
        bytes_max,
        request.max_wait_ms,
        refuses,
    )
    client.end_room()  # others must not wait for its wait; how many there are is bounded with the sessions
    outcome = await broker.as_broker.sharing.fetches.fetch(wanted)
    now_ms = int(broker.clock.monotonic_ms())
    if delay_ms := broker.quotas.fetch(client.user, client.client_id, outcome.size_bytes, now_ms):
        throttle(client, broker, FETCH, delay_ms, now_ms)  # the records are acquired: they go out all the same
    return outcome


def answer(
    request: ShareFetchRequest,
    outcome: Outcome,
    problems: dict[Place, BrokerError | None],
    broker: Broker,
    client: Client,
) -> Work[ShareFetchResponse]:
    cost = Cost()
    settings = broker.as_broker.sharing.fetches.settings(request.group_id or "")
    response = ShareFetchResponse(acquisition_lock_timeout_ms=settings.record_lock_duration_ms, responses=[])
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    leaders: dict[int, None] = {}
    read = {**outcome.fetched, **outcome.refused}
    for place in chain(read, (place for place in problems if place not in read)):
        data = partition_data(place, outcome, problems)
        if ErrorCode.NOT_LEADER_OR_FOLLOWER in (data.error_code, data.acknowledge_error_code):
            data.current_leader = LeaderIdAndEpoch(*leader_of(*place, broker.metadata))
            leaders[data.current_leader.leader_id] = None
        topic_id, _ = place
        if topic_id not in topics:
            topics[topic_id] = ShareFetchableTopicResponse(topic_id, [])
        topics[topic_id].partitions.append(data)
        if cost.add(PARTITION_COST):
            yield
    response.responses = list(topics.values())
    response.node_endpoints = [
        endpoint
        for leader in leaders
        for endpoint in endpoint_of(leader, client.listener, broker.metadata, NodeEndpoint)
    ]
    charge_topics(list(outcome.fetched.items()), broker, client)
    return response


def partition_data(place: Place, outcome: Outcome, problems: dict[Place, BrokerError | None]) -> PartitionData:
    data = PartitionData(place[1], records=b"", acquired_records=[])
    if (refusal := outcome.refused.get(place)) is not None:
        data.error_code, data.error_message = refusal.code, refusal.message or None
    if (problem := problems.get(place)) is not None:
        data.acknowledge_error_code, data.acknowledge_error_message = problem.code, problem.message or None
    if place in outcome.fetched:
        _, fetched = outcome.fetched[place]
        data.records = fetched.parts
        data.acquired_records = [AcquiredRecords(*part) for part in fetched.acquired]
    return data


def charge_topics(fetched: Sequence[tuple[Place, tuple[str, Fetched]]], broker: Broker, client: Client) -> None:
    """Charge topics that have a limit."""
    if not broker.quotas.fetched.limited:
        return
    served = [
        (Served(topic, place[1]), fetches.PartitionData(place[1], records=found.parts))
        for place, (topic, found) in fetched
    ]
    at_once(charge_fetched(served, broker, client))
