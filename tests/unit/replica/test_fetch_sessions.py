"""Fetch sessions as KIP-227 has them."""

from itertools import count

import pytest

from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.replica.leading.follower_updates import Feed
from kavka_broker.replica.serving.fetch_sessions import EVICTION_MS, FetchContext, FetchSessions, prepare

ORDERS = b"orders".ljust(16, b"\0")


def request(
    session_id: int, epoch: int, *partitions: int, forget: tuple[int, ...] = (), offset: int = 0
) -> FetchRequest:
    topics = [FetchTopic(topic_id=ORDERS, partitions=[FetchPartition(p, fetch_offset=offset) for p in partitions])]
    forgotten = [ForgottenTopic(topic_id=ORDERS, partitions=list(forget))] if forget else []
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=topics if partitions else [],
        forgotten_topics_data=forgotten,
    )


def entered(sessions: FetchSessions, request: FetchRequest, uses_ids: bool, now_ms: float) -> FetchContext:
    """The context of a fetch whose answer brings its partitions."""
    context = sessions.enter(request, uses_ids, now_ms)
    sessions.open(context, now_ms)
    return context


@pytest.fixture
def sessions() -> FetchSessions:
    ids = count(1)
    return FetchSessions(2, lambda: next(ids))


def test_an_incremental_fetch_serves_what_was_named_before(sessions: FetchSessions) -> None:
    first = entered(sessions, request(0, 0, 0, 1), True, 0)
    assert (first.session_id, first.is_incremental) == (1, False)

    second = entered(sessions, request(1, 1, 1, 2, forget=(0,), offset=7), True, 0)

    assert second.is_incremental
    assert [(p.index, p.position.fetch_offset) for p in second.partitions] == [(1, 7), (2, 7)]


def asked_as_follower(sessions: FetchSessions, number: int, broker_epoch: int, *partitions: int) -> list[int]:
    """The partitions that are looked at for a fetch of broker 2 that names these."""
    made = request(min(number, 1), number, *partitions)
    made.replica_state = ReplicaState(2, broker_epoch)
    context = entered(sessions, made, True, 0)
    assert context.session is not None
    context.session.feed = context.session.feed or Feed()
    return [one.index for one in context.partitions]


def test_a_follower_that_has_registered_again_is_heard_for_each_partition(sessions: FetchSessions) -> None:
    assert asked_as_follower(sessions, 0, 11, 0, 1) == [0, 1]
    assert asked_as_follower(sessions, 1, 11, 1) == [1]
    assert asked_as_follower(sessions, 2, 12) == [0, 1]
    assert asked_as_follower(sessions, 3, 12) == []


def test_a_follower_that_asked_before_it_had_registered_is_heard_for_each_partition(sessions: FetchSessions) -> None:
    assert asked_as_follower(sessions, 0, -1, 0, 1) == [0, 1]
    assert asked_as_follower(sessions, 1, 12) == [0, 1]


def test_a_fetch_that_comes_again_hides_nothing_of_a_new_registration(sessions: FetchSessions) -> None:
    """Its answer was lost: as in Apache Kafka its number is used up, and what it begins again with names everything."""
    assert asked_as_follower(sessions, 0, 11, 0, 1) == [0, 1]
    assert asked_as_follower(sessions, 1, 12) == [0, 1]
    with pytest.raises(BrokerError) as refused:
        asked_as_follower(sessions, 1, 12)
    assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert asked_as_follower(sessions, 0, 12, 0, 1) == [0, 1]


@pytest.mark.parametrize(("replica_id", "is_told_again"), [(2, True), (-1, False)])
@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_follower_is_told_what_it_was_told_before_when_it_names_the_partition(
    sessions: FetchSessions, replica_id: int, is_told_again: bool, is_prepared: bool
) -> None:
    """It slept after an error, and dropped the answer to the fetch before: no other would tell the high watermark."""
    data = PartitionData(0, high_watermark=50, log_start_offset=0)

    def tells(number: int, *partitions: int) -> bool:
        made = request(min(number, 1), number, *partitions, offset=50)
        made.replica_state = ReplicaState(replica_id, 11)
        prepared = at_once(prepare(made)) if is_prepared else None
        context = sessions.enter(made, True, 0, prepared)
        sessions.open(context, 0)
        assert context.session is not None
        return context.tells(next(iter(context.session.partitions.values())), data)

    assert tells(0, 0)
    assert not tells(1)
    assert tells(2, 0) is is_told_again
    assert not tells(3)


def test_a_session_that_forgets_all_its_partitions_ends(sessions: FetchSessions) -> None:
    entered(sessions, request(0, 0, 0), True, 0)

    context = entered(sessions, request(1, 1, forget=(0,)), True, 0)

    assert context.session_id == 0
    assert len(sessions) == 0


@pytest.mark.parametrize(
    ("session_id", "epoch", "uses_ids", "code"),
    [
        (9, 1, True, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, False, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_session_that_the_client_knows_otherwise_is_refused(
    sessions: FetchSessions, session_id: int, epoch: int, uses_ids: bool, code: ErrorCode
) -> None:
    entered(sessions, request(0, 0, 0), True, 0)
    with pytest.raises(BrokerError) as refused:
        entered(sessions, request(session_id, epoch), uses_ids, 0)
    assert refused.value.code == code


@pytest.mark.parametrize(("epoch", "left"), [(-1, 0), (0, 1)])
def test_a_full_fetch_ends_the_session_it_names(sessions: FetchSessions, epoch: int, left: int) -> None:
    entered(sessions, request(0, 0, 0), True, 0)
    entered(sessions, request(1, epoch, 0), True, 0)
    assert len(sessions) == left


def test_slots_are_bounded_and_only_idle_sessions_give_way(sessions: FetchSessions) -> None:
    for _ in range(2):
        entered(sessions, request(0, 0, 0), True, 0)
    assert entered(sessions, request(0, 0, 0), True, EVICTION_MS - 1).session_id == 0

    assert entered(sessions, request(0, 0, 0), True, EVICTION_MS).session_id == 3

    assert len(sessions) == 2
    assert sessions.evictions == 1


def of_follower(broker_id: int) -> FetchRequest:
    wanted = request(0, 0, 0)
    wanted.replica_state = ReplicaState(broker_id, 1)
    return wanted


def test_a_follower_takes_the_place_of_a_consumer_and_no_consumer_that_of_a_follower(sessions: FetchSessions) -> None:
    assert entered(sessions, of_follower(7), True, 0).session_id == 1
    assert entered(sessions, request(0, 0, 0), True, 1).session_id == 2
    assert entered(sessions, of_follower(8), True, 2).session_id == 3
    assert [session.is_of_follower for session in sessions.sessions.values()] == [True, True]
    assert entered(sessions, of_follower(9), True, 3).session_id == 0
    assert entered(sessions, request(0, 0, 0), True, 3).session_id == 0
    assert entered(sessions, request(0, 0, 0), True, EVICTION_MS).session_id == 4


def test_a_session_takes_no_place_before_it_is_opened(sessions: FetchSessions) -> None:
    throttled = sessions.enter(request(0, 0, 0), True, 0)
    assert (throttled.session_id, len(sessions)) == (0, 0)

    sessions.open(throttled, 5)
    sessions.open(throttled, 5)

    assert (throttled.session_id, len(sessions)) == (1, 1)
    assert [p.index for p in sessions.enter(request(1, 1), True, 6).partitions] == [0]


def test_the_partition_that_was_served_goes_last(sessions: FetchSessions) -> None:
    context = entered(sessions, request(0, 0, 0, 1, 2), True, 0)
    assert context.session is not None
    context.session.serve_last(context.partitions[0])

    assert [p.index for p in entered(sessions, request(1, 1), True, 0).partitions] == [1, 2, 0]


def test_all_sessions_together_remember_so_many_partitions() -> None:
    ids = count(1)
    sessions = FetchSessions(10, lambda: next(ids), partitions_max=5)
    assert entered(sessions, request(0, 0, 0, 1, 2), True, 0).session_id == 1
    assert entered(sessions, request(0, 0, 0, 1, 2), True, 0).session_id == 0
    assert entered(sessions, request(0, 0, 0), True, 0).session_id == 2

    with pytest.raises(BrokerError) as caught:
        entered(sessions, request(2, 1, 1, 2), True, 0)

    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(sessions), sessions.partition_count) == (1, 3)


def by_name(session_id: int, epoch: int, name: str, *partitions: int, forget: tuple[int, ...] = ()) -> FetchRequest:
    topics = [FetchTopic(topic=name, partitions=[FetchPartition(index) for index in partitions])] if partitions else []
    forgotten = [ForgottenTopic(topic=name, partitions=list(forget))] if forget else []
    return FetchRequest(
        session_id=session_id, session_epoch=epoch, topics=topics, forgotten_topics_data=forgotten, max_bytes=1
    )


@pytest.mark.parametrize("is_prepared", [False, True])
def test_short_names_cannot_be_exchanged_for_long_ones_that_have_no_room(is_prepared: bool) -> None:
    ids = count(1)
    sessions = FetchSessions(10, lambda: next(ids), names_bytes_max=100_000)

    def enter(asked: FetchRequest) -> FetchContext:
        context = sessions.enter(asked, False, 0, at_once(prepare(asked)) if is_prepared else None)
        sessions.open(context, 0)
        return context

    session_id = enter(by_name(0, 0, "short", 0, 1, 2, 3)).session_id
    exchange = by_name(session_id, 1, "n" * 32_000, 0, 1, 2, 3)
    exchange.forgotten_topics_data = [ForgottenTopic(topic="short", partitions=[0, 1, 2, 3])]
    with pytest.raises(BrokerError) as caught:
        enter(exchange)
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not sessions.names_bytes


@pytest.mark.parametrize("is_prepared", [False, True])
def test_all_sessions_together_remember_so_many_bytes_of_names(is_prepared: bool) -> None:
    ids, long = count(1), "n" * 32_000
    sessions = FetchSessions(10, lambda: next(ids), names_bytes_max=100_000)

    def enter(asked: FetchRequest) -> FetchContext:
        context = sessions.enter(asked, False, 0, at_once(prepare(asked)) if is_prepared else None)
        sessions.open(context, 0)
        return context

    assert enter(by_name(0, 0, long, 0, 1)).session_id == 1
    assert enter(by_name(0, 0, long, 0, 1)).session_id == 0, "its client goes on without a session"
    assert enter(by_name(0, 0, "orders", 0)).session_id == 2
    before = sessions.names_bytes
    enter(by_name(2, 1, "orders", 0))
    assert sessions.names_bytes == before, "a partition that is known is not kept again"
    enter(by_name(1, 1, long, 0, 0))
    assert sessions.names_bytes == before, "a partition that is named twice is one"
    with pytest.raises(BrokerError) as caught:
        enter(by_name(2, 2, "m" * 40_000, 0))
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    enter(by_name(1, 2, long, forget=(1,)))
    assert len(long) < sessions.names_bytes < len(long) + 100
