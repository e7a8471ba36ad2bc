"""SCRAM as the server plays it: the RFC's example, what is refused, and that nothing but the password proves a user."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.authentication.scram import (
    MECHANISMS,
    SHA_256,
    SHA_512,
    TOKEN_BYTES_MAX,
    Credential,
    Exchange,
    Mechanism,
)
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.authentication.scripted import FIRST, FIRST_ANSWER, LAST, LAST_ANSWER, NONCE, PASSWORD, kept, last

KEPT = {mechanism.number: kept(mechanism) for mechanism in MECHANISMS.values()}
WORDS = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"


def find(user: str, number: int) -> Credential | None:
    return KEPT[number] if user in {"user", "a,b=c"} else None


def begun() -> Exchange:
    return Exchange(SHA_256, find, NONCE)


def test_the_example_of_the_rfc_is_played_byte_for_byte() -> None:
    exchange = begun()
    assert exchange.take(FIRST) == (FIRST_ANSWER, None)
    assert exchange.take(LAST) == (LAST_ANSWER, "user")


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize(
    ("first", "user"),
    [
        (b"n,,n=user,r=abc", "user"),
        (b"n,a=user,n=user,r=abc", "user"),
        (b"n,,n=a=2Cb=3Dc,r=abc", "a,b=c"),
        (b"n,,n=user,r=abc,tokenauth=false", "user"),
        (b"n,,n=user,r=abc,m=foo", "user"),
    ],
)
def test_a_client_that_knows_the_password_is_let_in(mechanism: Mechanism, first: bytes, user: str) -> None:
    exchange = Exchange(mechanism, find, NONCE)
    answer, nobody = exchange.take(first)
    assert nobody is None
    assert exchange.take(last(mechanism, PASSWORD, first, answer))[1] == user


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,n=user",
        b"n,,r=abc",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,m=must,n=user,r=abc",
        b"n,,n=nobody,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a\x7fbc",
        b"\xff\xfe",
        LAST,
    ],
)
def test_a_first_message_that_proves_nothing_is_refused(first: bytes) -> None:
    with pytest.raises(BrokerError) as refused:
        begun().take(first)
    assert (refused.value.code, refused.value.message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, WORDS)


def test_a_user_cannot_log_in_for_another() -> None:
    with pytest.raises(BrokerError, match="Client requested an authorization id that is different from username"):
        begun().take(b"n,a=other,n=user,r=abc")


def test_a_token_too_long_to_be_read_at_once_is_refused() -> None:
    room = TOKEN_BYTES_MAX - len(FIRST)
    extended = FIRST + b",x=" + b"y" * (room - 3)
    assert begun().take(extended)[1] is None
    with pytest.raises(BrokerError, match="invalid credentials"):
        begun().take(extended + b"y")
    exchange = begun()
    exchange.take(FIRST)
    with pytest.raises(BrokerError, match="invalid credentials"):
        exchange.take(LAST + b"A" * TOKEN_BYTES_MAX)


def swapped(text: bytes, before: bytes, after: bytes) -> bytes:
    assert before in text
    return text.replace(before, after)


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        FIRST,
        LAST[:-1],
        swapped(LAST, b"p=dH", b"p=dI"),
        swapped(LAST, b"c=biws", b"c=eSws"),  # the header of another first message
        swapped(LAST, b"%hvY", b"%hvZ"),
        swapped(LAST, b"p=dHzb", b"p="),
        swapped(LAST, b"p=dHzb", b"p===="),
        last(SHA_256, "pencils", FIRST, FIRST_ANSWER),
        last(SHA_512, PASSWORD, FIRST, FIRST_ANSWER),
        b"\xff",
    ],
)
def test_a_last_message_that_proves_nothing_is_refused(wrong: bytes) -> None:
    exchange = begun()
    exchange.take(FIRST)
    with pytest.raises(BrokerError) as refused:
        exchange.take(wrong)
    assert (refused.value.code, refused.value.message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, WORDS)


def test_a_login_cannot_be_played_again() -> None:
    exchange = Exchange(SHA_256, find, "another-nonce-of-the-server")
    exchange.take(FIRST)
    with pytest.raises(BrokerError):
        exchange.take(LAST)


def test_two_clients_with_one_nonce_of_their_own_are_told_apart() -> None:
    with pytest.raises(AssertionError, match="can be guessed"):
        Exchange(SHA_256, find, "short")


@settings(max_examples=300)
@given(st.integers(0, len(LAST) - 1), st.integers(1, 255))
def test_no_other_byte_in_the_last_message_proves_the_user(place: int, flip: int) -> None:
    changed = bytes([*LAST[:place], LAST[place] ^ flip, *LAST[place + 1 :]])
    exchange = begun()
    exchange.take(FIRST)
    try:
        _, user = exchange.take(changed)
    except BrokerError:
        return
    # The last character before the padding holds two bits that are no part of the proof.
    assert (user, place) == ("user", len(LAST) - 2)


def test_a_password_cannot_be_read_from_what_is_kept() -> None:
    for mechanism in MECHANISMS.values():
        credential = kept(mechanism)
        assert PASSWORD.encode() not in b"".join(credential[:3])
        assert len({credential.stored_key, credential.server_key}) == 2
