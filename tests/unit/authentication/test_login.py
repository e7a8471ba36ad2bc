"""The login of a connection: what may come when, what a token proves, and what is said of one that proves nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.login import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Login,
    Proof,
    plain_user,
)
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.core.authentication.scram import TokenLogin
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from tests.unit.authentication import scripted

METADATA = 3
KEPT = scripted.kept(scripted.MECHANISM)
USERS = {"alice": "alice-secret", "bob": "x", "é" * 256: "x", "é" * 257: "x"}
INVALID = "Authentication failed: Invalid username or password"


def login(*mechanisms: str, counts: Authentications | None = None) -> Login:
    return Login(SaslSettings(mechanisms or ("PLAIN",), USERS), counts or Authentications())


def proved(found: Login, token: bytes) -> Proof:
    return found.authenticate(token, lambda user, _: KEPT if user == "user" else None, lambda: scripted.NONCE, 1)


def test_a_client_is_known_after_versions_a_handshake_and_a_token() -> None:
    found = login()
    found.check(API_VERSIONS)
    found.check(SASL_HANDSHAKE)
    found.choose("PLAIN", 1)
    found.check(SASL_AUTHENTICATE)
    assert proved(found, b"\0alice\0alice-secret") == Proof(b"", "alice")


@pytest.mark.parametrize("api_key", [METADATA, SASL_AUTHENTICATE, 0, 1, 36, -1])
def test_nothing_else_is_let_in_before_the_handshake(api_key: int) -> None:
    with pytest.raises(ProtocolViolation, match="before the client is known: ApiVersions or SaslHandshake is expected"):
        login().check(api_key)


def test_a_second_question_for_versions_ends_the_login() -> None:
    found = login()
    found.check(API_VERSIONS)
    with pytest.raises(ProtocolViolation, match="SaslHandshake is expected"):
        found.check(API_VERSIONS)


def test_versions_may_be_asked_for_twice_where_the_first_was_refused() -> None:
    found = login()
    found.check(API_VERSIONS)
    found.refuse_versions()
    found.check(API_VERSIONS)
    found.refuse_versions()
    with pytest.raises(ProtocolViolation, match="SaslHandshake is expected"):
        found.check(API_VERSIONS)


def test_a_handshake_may_follow_a_refused_version() -> None:
    found = login()
    found.check(API_VERSIONS)
    found.refuse_versions()
    found.check(SASL_HANDSHAKE)


@pytest.mark.parametrize("api_key", [API_VERSIONS, SASL_HANDSHAKE, METADATA])
def test_only_a_token_follows_the_handshake(api_key: int) -> None:
    found = login()
    found.choose("PLAIN", 1)
    with pytest.raises(BrokerError, match="SaslAuthenticate is expected") as refused:
        found.check(api_key)
    assert refused.value.code is ErrorCode.ILLEGAL_SASL_STATE
    with pytest.raises(ProtocolViolation, match="nothing more is expected"):
        found.check(SASL_AUTHENTICATE)


def test_each_login_counts_once_and_only_at_its_end() -> None:
    counts = Authentications()
    right, wrong, lost, left = (login(counts=counts) for _ in range(4))
    for found in (right, wrong, lost, left):
        found.choose("PLAIN", 1)
    assert counts == Authentications()

    proved(right, b"\0alice\0alice-secret")
    with pytest.raises(BrokerError):
        proved(wrong, b"\0alice\0guess")
    wrong.fail()
    with pytest.raises(BrokerError):
        lost.check(METADATA)
    with pytest.raises(ProtocolViolation):
        lost.check(METADATA)
    with pytest.raises(BrokerError):
        login(counts=counts).choose("GSSAPI", 1)
    assert counts == Authentications(successful=1, failed=3)


def test_tokens_come_bare_after_the_oldest_handshake() -> None:
    found = login()
    found.choose("PLAIN", 0)
    assert found.takes_bare_tokens
    with pytest.raises(ProtocolViolation):
        found.check(SASL_AUTHENTICATE)


@pytest.mark.parametrize("mechanism", ["", "GSSAPI", "plain", "SCRAM-SHA-256", "OAUTHBEARER"])
def test_a_mechanism_that_is_not_served_ends_the_login(mechanism: str) -> None:
    found = login()
    with pytest.raises(BrokerError) as refused:
        found.choose(mechanism, 1)
    assert refused.value.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    with pytest.raises(ProtocolViolation, match="nothing more is expected"):
        found.check(SASL_HANDSHAKE)


def test_a_token_is_tried_once_a_connection() -> None:
    found = login()
    found.choose("PLAIN", 1)
    with pytest.raises(BrokerError):
        proved(found, b"\0alice\0guess")
    with pytest.raises(ProtocolViolation):
        found.check(SASL_AUTHENTICATE)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"\0alice\0wrong", INVALID),
        (b"\0nobody\0alice-secret", INVALID),
        (b"\0nobody\0", "Authentication failed: password not specified"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\xff\0a\0b", INVALID),
    ],
)
def test_a_token_that_proves_nothing(token: bytes, words: str) -> None:
    with pytest.raises(BrokerError) as refused:
        plain_user(token, USERS)
    assert (refused.value.code, refused.value.message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, words)


@given(st.binary(max_size=64))
def test_no_bytes_but_a_users_own_prove_a_user(token: bytes) -> None:
    proofs = {b"\0alice\0alice-secret", b"alice\0alice\0alice-secret", b"\0bob\0x", b"bob\0bob\0x"}
    try:
        assert plain_user(token, USERS) in USERS
    except BrokerError:
        assert token not in proofs
    else:
        assert token in proofs


@pytest.mark.parametrize("version", [0, 1])
def test_scram_takes_two_tokens(version: int) -> None:
    found = login("SCRAM-SHA-256")
    found.choose("SCRAM-SHA-256", version)
    first = proved(found, scripted.FIRST)
    assert first == Proof(scripted.FIRST_ANSWER, None)
    assert found.takes_bare_tokens is not version
    assert proved(found, scripted.LAST) == Proof(scripted.LAST_ANSWER, "user")
    with pytest.raises(ProtocolViolation, match="nothing more is expected"):
        found.check(SASL_AUTHENTICATE)


def test_a_user_with_a_name_that_nothing_keeps_whole_is_not_let_in() -> None:
    found = login()
    found.choose("PLAIN", 1)
    assert proved(found, f"\0{'é' * 256}\0x".encode()).user == "é" * 256
    counts = Authentications()
    found = login(counts=counts)
    found.choose("PLAIN", 1)
    with pytest.raises(BrokerError) as refused:
        proved(found, f"\0{'é' * 257}\0x".encode())
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.value.message == "Authentication failed: the user's name has 257 characters; 256 are allowed"
    assert counts == Authentications(failed=1)
    assert found.has_failed


def test_a_long_name_is_refused_by_its_length_only_once_it_is_proved() -> None:
    """Before that it would tell that there is such a user."""
    found = login()
    found.choose("PLAIN", 1)
    with pytest.raises(BrokerError, match="Invalid username or password"):
        proved(found, f"\0{'é' * 257}\0wrong".encode())


@pytest.mark.parametrize(("characters", "is_let_in"), [(256, True), (257, False)])
def test_scram_lets_in_no_longer_name_either_nor_a_token_of_its_owner(*, characters: int, is_let_in: bool) -> None:
    user = "u" * characters
    for extension in ("", ",tokenauth=true"):
        found = login("SCRAM-SHA-256")
        found.choose("SCRAM-SHA-256", 1)
        token_login = TokenLogin(KEPT, user, 1_000)

        def take(token: bytes, found: Login = found, token_login: TokenLogin = token_login) -> Proof:
            return found.authenticate(
                token, lambda *_: KEPT, lambda: scripted.NONCE, 1, find_token=lambda *_: token_login
            )

        first = f"n,,n={'id' if extension else user},r=rOprNGfwEbeRWgbNEkqO{extension}".encode()
        proof = scripted.last(scripted.MECHANISM, scripted.PASSWORD, first, take(first).answer)
        if is_let_in:
            assert take(proof).user == user
        else:
            with pytest.raises(BrokerError, match="has 257 characters; 256 are allowed"):
                take(proof)


def test_scram_ends_with_the_first_token_that_is_wrong() -> None:
    found = login("SCRAM-SHA-256")
    found.choose("SCRAM-SHA-256", 1)
    with pytest.raises(BrokerError):
        proved(found, scripted.LAST)
    with pytest.raises(ProtocolViolation, match="nothing more is expected"):
        found.check(SASL_AUTHENTICATE)


def test_settings_do_not_show_passwords() -> None:
    assert "alice-secret" not in repr(SaslSettings(("PLAIN",), USERS))
