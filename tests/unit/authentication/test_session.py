"""How long a login holds, what renews it, and what a renewal has to prove (KIP-368)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.login import Login, Proof
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.core.authentication.session import RENEWAL_MS_MIN, Session
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from tests.unit.authentication import scripted

USERS = {"alice": "alice-secret", "bob": "b"}
ALICE, BOB = b"\0alice\0alice-secret", b"\0bob\0b"
SETTINGS = SaslSettings(("PLAIN", "SCRAM-SHA-256"), USERS, session_ms_max={"PLAIN": 5000, "SCRAM-SHA-256": 0})


def session(counts: Authentications | None = None, now_ms: float = 100.0) -> Session:
    """That of alice, who has logged in just now."""
    login = Login(SETTINGS, counts or Authentications())
    login.choose("PLAIN", 1)
    proved(login, ALICE)
    found = login.session_of("alice", now_ms, 0)
    assert found is not None
    return found


def proved(login: Login, token: bytes, version: int = 1) -> Proof:
    return login.authenticate(token, lambda *_: None, lambda: scripted.NONCE, version)


def renewal(of: Session, mechanism: str = "PLAIN", version: int = 1) -> Login:
    login = Login(of.settings, of.counts, of)
    login.choose(mechanism, version)
    return login


def test_a_login_holds_until_its_end_and_not_beyond() -> None:
    counts = Authentications()
    found = session(counts)
    assert (found.lifetime_ms, found.ends_ms) == (5000, 5100)
    assert [found.holds(now_ms) for now_ms in (100, 5099.9, 5100, 5100.1, 5101, 5000)] == [True] * 3 + [False] * 3
    assert counts.sessions_ended == 1


@pytest.mark.parametrize("lifetimes", [{}, {"PLAIN": 0}, {"PLAIN": -1}, {"SCRAM-SHA-256": 9}])
def test_without_a_lifetime_it_holds_as_long_as_its_connection(lifetimes: dict[str, int]) -> None:
    login = Login(SaslSettings(("PLAIN",), USERS, session_ms_max=lifetimes), Authentications())
    login.choose("PLAIN", 1)
    assert login.session_of("alice", 0, 0) is None


def test_it_is_renewed_before_and_behind_its_end_but_not_once_it_has_been_refused() -> None:
    early, late, refused = session(), session(), session()
    assert early.begin_renewal(101)
    assert late.begin_renewal(9_999_999)
    assert not refused.holds(5101)
    assert not refused.begin_renewal(5102)


@given(st.lists(st.integers(0, 5000), max_size=12))
def test_two_renewals_never_begin_within_a_second(waits_ms: list[int]) -> None:
    found, now_ms, begun = session(), 0, list[int]()
    for wait_ms in waits_ms:
        now_ms += wait_ms
        if found.begin_renewal(now_ms):
            begun.append(now_ms)
            login = Login(found.settings, found.counts, found)
            login.choose("PLAIN", 1)
            renewed = login.session_of("alice", now_ms, 0)
            assert renewed is not None
            found = renewed
    assert all(later - earlier >= RENEWAL_MS_MIN for earlier, later in pairwise(begun))
    assert bool(begun) == bool(waits_ms)


@pytest.mark.parametrize("version", [0, 1])
def test_the_same_user_renews_it(version: int) -> None:
    counts = Authentications()
    login = renewal(session(counts), version=version)
    assert login.takes_bare_tokens == (version == 0)
    assert proved(login, ALICE).user == "alice"
    assert counts == Authentications(successful=1, renewed=1)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (BOB, "Cannot change principals during re-authentication from User.alice: User.bob"),
        (b"\0alice\0former", "Authentication failed: Invalid username or password"),
    ],
)
def test_another_user_and_a_wrong_password_do_not(token: bytes, words: str) -> None:
    counts = Authentications()
    with pytest.raises(BrokerError) as refused:
        proved(renewal(session(counts)), token)
    assert (refused.value.code, refused.value.message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, words)
    assert counts == Authentications(successful=1, not_renewed=1)


def test_a_wrong_proof_of_scram_is_refused_in_words_of_a_renewal() -> None:
    settings = SaslSettings((scripted.MECHANISM.name,), session_ms_max={scripted.MECHANISM.name: 9})
    former = Session(settings, Authentications(), scripted.MECHANISM.name, "user", 9, 9, None)
    with pytest.raises(BrokerError) as refused:
        proved(renewal(former, scripted.MECHANISM.name), b"no token")
    words = (
        "Authentication failed during re-authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert refused.value.message == words


@pytest.mark.parametrize("version", [0, 1])
def test_another_mechanism_is_taken_and_whatever_follows_is_refused_unread(version: int) -> None:
    counts = Authentications()
    login = renewal(session(counts), "SCRAM-SHA-256", version)
    assert login.takes_bare_tokens
    with pytest.raises(BrokerError) as refused:
        proved(login, ALICE)
    assert refused.value.message == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )
    assert counts == Authentications(successful=1, not_renewed=1)


def test_a_mechanism_that_is_not_served_ends_the_connection_without_an_answer() -> None:
    counts = Authentications()
    with pytest.raises(ProtocolViolation):
        renewal(session(counts), "GSSAPI")
    assert counts == Authentications(successful=1, not_renewed=1)


@pytest.mark.parametrize(("versions", "untold"), [([0], 1), ([1], 0), ([1, 0], 0), ([0, 1], 0)])
def test_clients_that_are_not_told_of_the_end_are_counted(versions: list[int], untold: int) -> None:
    counts = Authentications()
    login = Login(SaslSettings((scripted.MECHANISM.name, "PLAIN"), USERS), counts)
    login.choose("PLAIN" if len(versions) == 1 else scripted.MECHANISM.name, 1)
    if len(versions) == 1:
        proved(login, ALICE, versions[0])
    else:
        kept = scripted.kept(scripted.MECHANISM)
        for token, version in zip((scripted.FIRST, scripted.LAST), versions, strict=True):
            login.authenticate(token, lambda *_: kept, lambda: scripted.NONCE, version)
    assert counts == Authentications(successful=1, successful_untold=untold)
