"""Share sessions: their epochs, and what strangers can make a broker keep."""

from collections.abc import Sequence

import pytest

from kavka_broker.core.share.sessions import EPOCH_MAX, FINAL_EPOCH, Place, SessionKey, ShareSession, ShareSessions
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode

KEY = SessionKey("g", "m")
A, B, C = (bytes(16), 0), (bytes(16), 1), (bytes(16), 2)


def resume(kept: ShareSessions, added: Sequence[Place], forgotten: Sequence[Place] = ()) -> None:
    session = kept.by_key[KEY]
    kept.resume(KEY, session.epoch)
    at_once(kept.alter(session, dict.fromkeys(added), dict.fromkeys(forgotten)))


def test_each_request_has_the_next_epoch() -> None:
    kept = ShareSessions(10)
    session = kept.open(KEY, [A])
    assert kept.resume(KEY, 1) is session
    with pytest.raises(BrokerError) as refused:
        kept.resume(KEY, 1)
    assert refused.value.code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    session.epoch = EPOCH_MAX
    kept.resume(KEY, EPOCH_MAX)
    assert session.epoch == 1
    assert kept.resume(KEY, FINAL_EPOCH) is session
    with pytest.raises(BrokerError) as refused:
        kept.resume(SessionKey("g", "other"), 1)
    assert refused.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_partitions_are_added_and_taken_away() -> None:
    kept = ShareSessions(10)
    session = kept.open(KEY, [A, B, A])
    resume(kept, [C], [A])
    assert (list(session.places), kept.places) == ([B, C], 2)
    session.served(B)
    assert list(session.places) == [C, B], "the others come first next time"
    kept.close(session)
    assert (kept.places, kept.names_bytes, kept.has("g")) == (0, 0, False)


def test_a_refused_request_leaves_the_session_as_it_was() -> None:
    kept = ShareSessions(10, places_max=2)
    session = kept.open(KEY, [A])
    for _ in range(3):
        with pytest.raises(BrokerError) as refused:
            resume(kept, [B, C])
        assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert (list(session.places), kept.places) == ([A], 1)
    resume(kept, [A, B])
    assert kept.places == 2


def test_partitions_change_in_steps_and_a_session_that_is_closed_meanwhile_counts_once() -> None:
    """99,000 partitions that were taken out in one step held the loop for 85 ms."""
    kept = ShareSessions(10)
    session = kept.open(KEY, [A, B])
    kept.resume(KEY, 1)
    work = kept.alter(session, [C], [A, B])
    steps = 0
    while kept.places == 2:
        assert next(work) == 1
        steps += 1
    kept.close(session)
    steps += len(list(work))
    assert steps == 2 * 3
    assert kept.places == 0


def test_names_have_a_bound() -> None:
    kept = ShareSessions(10, names_bytes_max=100)
    kept.open(KEY, [])
    with pytest.raises(BrokerError) as refused:
        kept.open(SessionKey("g" * 30, "m"), [])
    assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert list(kept.by_key) == [KEY]


def test_a_session_that_was_closed_closes_no_other() -> None:
    kept = ShareSessions(10)
    before = kept.open(KEY, [])
    kept.close(before)
    after = kept.open(KEY, [])
    kept.close(before)
    assert kept.by_key == {KEY: after}
    kept.close(ShareSession(KEY))
    assert kept.has("g")


def places(first: int, count: int) -> list[Place]:
    return [(bytes(16), index) for index in range(first, first + count)]


def test_what_is_refused_changes_nothing() -> None:
    served = ShareSessions(10, places_max=10)
    session = served.open(KEY, places(0, 6))
    for _ in range(3):
        with pytest.raises(BrokerError) as refused:
            resume(served, places(100, 6))
        assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert (served.places, list(session.places)) == (6, places(0, 6))


def test_partitions_are_exchanged_in_full_sessions() -> None:
    served = ShareSessions(10, places_max=10)
    session = served.open(KEY, places(0, 10))
    resume(served, places(10, 4), [*places(0, 4), *places(500, 9)])
    assert (served.places, list(session.places)) == (10, [*places(4, 6), *places(10, 4)])
    resume(served, [*places(5, 1), *places(5, 1), *places(20, 1)], places(5, 2))
    assert (served.places, len(session.places)) == (10, 10)
    assert served.resume(KEY, FINAL_EPOCH) is session
    served.close(session)
    assert served.places == 0


def test_a_partition_that_is_taken_out_is_remembered_no_longer() -> None:
    """Otherwise one session could name more and more of them, a few at a time."""
    kept = ShareSessions(10)
    session = kept.open(KEY, [A, B])
    session.acquires(A)
    session.acquires(B)
    resume(kept, [C], [A])
    session.served(A)
    assert list(session.acquired_from) == [B]
    assert session.acquired_from.keys() <= session.places.keys()
