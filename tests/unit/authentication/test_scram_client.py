"""SCRAM as a node plays it at another: against our own server, the RFC's example, and servers that are none."""

import base64

import pytest

from kavka_broker.core.authentication.scram import MECHANISMS, SHA_256, Exchange, Mechanism
from kavka_broker.core.authentication.scram_client import Client, LoginError
from tests.unit.authentication.scripted import FIRST, FIRST_ANSWER, LAST, LAST_ANSWER, NONCE, PASSWORD, kept

OWN_NONCE = "rOprNGfwEbeRWgbNEkqO"


def begun(user: str = "user", mechanism: Mechanism = SHA_256) -> Client:
    return Client(mechanism, user, PASSWORD, OWN_NONCE)


def test_the_example_of_the_rfc_is_played_byte_for_byte() -> None:
    client = begun()
    assert client.first() == FIRST
    assert client.proof(FIRST_ANSWER) == LAST
    client.check(LAST_ANSWER)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("user", ["user", "a,b=c", "=2C", "\u017c\u00f3\u0142w"])
def test_our_own_server_lets_it_in_under_its_name(mechanism: Mechanism, user: str) -> None:
    server = Exchange(mechanism, lambda name, _: kept(mechanism) if name == user else None, NONCE)
    client = begun(user, mechanism)
    challenge, _ = server.take(client.first())
    verdict, found = server.take(client.proof(challenge))
    client.check(verdict)
    assert found == user


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        (b"", "none of SCRAM's"),
        (b"\xff", "none of SCRAM's"),
        (b"r=other,s=AAAA,i=4096", "none of SCRAM's"),
        (f"r={OWN_NONCE},s=AAAA,i=4096".encode(), "none of SCRAM's"),
        (f"r={OWN_NONCE}x,s=AAAA,i=4095".encode(), "4095 iterations"),
        (f"r={OWN_NONCE}x,s=AAAA,i=16385".encode(), "16385 iterations"),
        (f"r={OWN_NONCE}x,s=AAAA,i=9999999".encode(), "none of SCRAM's"),
        (f"r={OWN_NONCE}x,s=A,i=4096".encode(), "salt"),
        (f"r={OWN_NONCE}x,s={'A' * 8192},i=4096".encode(), "none of SCRAM's"),
    ],
)
def test_a_challenge_that_is_none_is_refused_before_it_costs_anything(challenge: bytes, words: str) -> None:
    with pytest.raises(LoginError, match=words):
        begun().proof(challenge)


@pytest.mark.parametrize("verdict", [b"", b"v=", b"e=other-error", b"v=" + base64.b64encode(bytes(32))])
def test_a_server_that_does_not_know_the_password_is_not_believed(verdict: bytes) -> None:
    client = begun()
    client.proof(FIRST_ANSWER)
    with pytest.raises(LoginError, match="does not know"):
        client.check(verdict)


def test_a_verdict_ahead_of_the_proof_is_not_believed() -> None:
    with pytest.raises(LoginError):
        begun().check(b"v=")
