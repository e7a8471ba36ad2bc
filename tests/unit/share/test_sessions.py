"""Share sessions: their epochs, and what they may keep."""

import pytest

from kavka_broker.core.share import sessions
from kavka_broker.core.share.sessions import FINAL_EPOCH, Place, SessionKey, ShareSessions
from kavka_broker.protocol.errors import BrokerError, ErrorCode

KEY = SessionKey("g", "m")


def places(first: int, count: int) -> list[Place]:
    return [(bytes(16), index) for index in range(first, first + count)]


def test_what_is_refused_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PLACES_MAX", 10)
    served = ShareSessions(10)
    session = served.open(KEY, places(0, 6))
    for _ in range(3):
        with pytest.raises(BrokerError) as refused:
            served.resume(KEY, 1, places(100, 6))
        assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert (served.places, session.epoch, list(session.places)) == (6, 1, places(0, 6))


def test_partitions_are_exchanged_in_full_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PLACES_MAX", 10)
    served = ShareSessions(10)
    session = served.open(KEY, places(0, 10))
    served.resume(KEY, 1, places(10, 4), [*places(0, 4), *places(500, 9)])
    assert (served.places, list(session.places)) == (10, [*places(4, 6), *places(10, 4)])
    served.resume(KEY, 2, [*places(5, 1), *places(5, 1), *places(20, 1)], places(5, 2))
    assert (served.places, len(session.places)) == (10, 10)
    assert served.resume(KEY, FINAL_EPOCH, places(100, 1)) is session
    served.close(session)
    assert served.places == 0
