"""Fetch (1): read record batches from the partitions on this broker. `replica.serving` reads and waits.

- Answered when `min_bytes` can be read, when a partition has an error, or after `max_wait_ms`. A partition that does
  not exist keeps nobody from waiting on the others: its consumer would ask again and again.
- Whole batches; the first one comes even if it is larger than the limits, so that a client can always go on.
- Reads end at the high watermark; with isolation level read_committed at the last stable offset, and the answer names
  the aborted transactions among what it brings.
- Fetch sessions (KIP-227) leave out of the answer what has not changed; the partition that was served goes last.
- A client that fetched at an epoch that has diverged is told where (KIP-595) and gets no records.
- On a controller's listener there is only the metadata log, with rules of its own (`metadata_fetch`).
- A follower reads to the end of the log (`follower_reads`). A consumer may read from a follower too, below the high
  watermark that the follower knows; with racks the leader sends it there (`read_replica`).
- A client over its quota gets an empty answer with `throttle_time_ms`, and is muted for as long. A full fetch opens no
  session then: the client would not know of it, since it throws an empty full answer away.
- While the audit trail has no room, and its policy is to reject, a consumer reads no topic but that: each partition is
  KAFKA_STORAGE_ERROR, after `max_wait_ms` (`audit_backpressure`).
- A topic that the client may not READ is TOPIC_AUTHORIZATION_FAILED, at each fetch of a session.
- A client of a topic over its limit gets its records, a second's worth of the limit, and is muted.
Versions: flexible from 12; topic ids from 13.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final

from kavka_broker.controller.metadata_fetch import metadata_fetch
from kavka_broker.core.authorization.acl_types import Operation, ResourceType
from kavka_broker.core.authorization.authorizer import Authorizer
from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.replica.serving.fetch_sessions import Named, prepare
from kavka_broker.replica.serving.pending_fetch import Follower, Poll, Reading, Refuses
from kavka_broker.replica.serving.read_replica import rack_for
from kavka_broker.request.audit_backpressure import is_mender
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.fetch_answers import ADDRESSES_SINCE, answer, answer_in_slices
from kavka_broker.request.quorum_answers import fitting
from kavka_broker.request.registry import BOTH, FETCH_BYTES_MAX, Postponed, api

TOPIC_ID_VERSION: Final = 13
RACKS_FROM: Final = 11  # a consumer that may read from followers names its rack
READ_COMMITTED: Final = 1
PREPARED_BYTES_MIN: Final = 8 * 1024


@api(FetchRequest, FetchResponse, versions=(4, 18), on=BOTH, bytes_max=FETCH_BYTES_MAX)
def fetch(
    request: FetchRequest, broker: Broker, client: Client, named: Named | None = None
) -> FetchResponse | Awaitable[FetchResponse]:
    if client.role == "controller":
        client.is_exempt = True
        return fitting(metadata_fetch(request, broker.quorum, client.version), client.version, ADDRESSES_SINCE)
    if named is None and client.size_bytes > PREPARED_BYTES_MIN:
        return fetch_prepared(request, broker, client)
    try:
        poll = poll_of(request, broker, client, named)
    except BrokerError as error:
        return FetchResponse(error_code=error.code)
    answering: Awaitable[FetchResponse]
    if poll.is_wide:
        client.has_long_answer, poll.on_wait = True, client.end_room
        answering = answer_wide(broker.fetches.read_wide(poll, broker.slices), poll, broker, client)
    else:
        reading = broker.fetches.read(poll)
        if reading is not None:
            return answer(reading, poll, broker, client)
        assert poll.waiter is not None
        client.end_room()
        answering = Postponed(poll.waiter.future, partial(answer_again, poll, broker, client))
    return answering if poll.feed is None else hurried(answering, poll, client)


async def fetch_prepared(request: FetchRequest, broker: Broker, client: Client) -> FetchResponse:
    """As `fetch`, once the partitions of the request are prepared in slices."""
    outcome = fetch(request, broker, client, await broker.slices.whole(prepare(request)))
    return outcome if isinstance(outcome, FetchResponse) else await outcome


def poll_of(request: FetchRequest, broker: Broker, client: Client, named: Named | None) -> Poll:
    """The request as a poll of `serving`. Raises BrokerError where its session id or epoch is wrong."""
    now_ms, follower = int(broker.clock.monotonic_ms()), follower_of(request)
    context = broker.fetches.sessions.enter(request, client.version >= TOPIC_ID_VERSION, now_ms, named)
    bytes_max = request.max_bytes
    if follower is None:
        bytes_max = min(bytes_max, broker.config["fetch.max.bytes"])
        bytes_max = broker.quotas.fetch_clamp(client.user, client.client_id, bytes_max, now_ms)
    poll = Poll(context, context.partitions, bytes_max, min(request.min_bytes, bytes_max), request.max_wait_ms)
    if follower is not None:
        client.is_exempt = True
        broker.fetches.feed(poll, follower, None if client.peer is None else client.peer.on_lost)
        return poll
    if broker.authorizer is not None:
        poll.refuses = denial(broker.authorizer, client)
    if broker.is_refusing and not is_mender(broker, client):
        broker.refused["fetch"] += 1
        poll.refuses, poll.is_withheld = withholding(poll.refuses, broker), True
    poll.is_committed_only = request.isolation_level == READ_COMMITTED
    if client.version >= RACKS_FROM:
        poll.reads_followers = True
        if request.rack_id:
            poll.rack = rack_for(request.rack_id, broker.config["replica.selector.class"])
    return poll


def denial(authorizer: Authorizer, client: Client) -> Refuses:
    """Return the question whether the client may READ a topic; a rule may change while its fetch waits."""
    principal, address = client.principal, client.address

    def refuses(topic: str) -> ErrorCode | None:
        is_allowed = authorizer.allows(principal, address, Operation.READ, ResourceType.TOPIC, topic)
        return None if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    return refuses


def withholding(denies: Refuses | None, broker: Broker) -> Refuses:
    """Return the same question while the audit trail has no room; it may have some again while the fetch waits."""

    def refuses(topic: str) -> ErrorCode | None:
        is_withheld = broker.is_refusing and topic != AUDIT_TOPIC
        return (denies and denies(topic)) or (ErrorCode.KAFKA_STORAGE_ERROR if is_withheld else None)

    return refuses


def follower_of(request: FetchRequest) -> Follower | None:
    """The broker that sends this fetch, or None for a consumer."""
    state = request.replica_state
    if state.replica_id >= 0:
        return Follower(state.replica_id, state.replica_epoch)
    return Follower(request.replica_id, -1) if request.replica_id >= 0 else None


def hurried(answering: Awaitable[FetchResponse], poll: Poll, client: Client) -> Awaitable[FetchResponse]:
    """A follower's answer: its connection's next request ends the wait, and its connection's end the poll."""
    if poll.waiter is not None:
        client.hurry = poll.waiter.interrupt
        if client.is_hurried:
            poll.waiter.interrupt()
    if isinstance(answering, Postponed) and poll.context.session is not None:
        return answering
    task = asyncio.ensure_future(answering)
    task.add_done_callback(lambda _: poll.end())
    return task


def answer_again(poll: Poll, broker: Broker, client: Client) -> FetchResponse:
    """The answer after the wait for `min_bytes` or `max_wait_ms`."""
    return answer(broker.fetches.read_again(poll), poll, broker, client)


async def answer_wide(reading: Awaitable[Reading], poll: Poll, broker: Broker, client: Client) -> FetchResponse:
    """The answer about very many partitions, read and made in slices."""
    return await broker.slices.whole(answer_in_slices(await reading, poll, broker, client))
