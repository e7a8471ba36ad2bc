"""OAUTHBEARER over raw frames: Kavka and Apache Kafka let in by the same tokens, and refuse the same."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hmac import digest
from types import MappingProxyType
from typing import Any

import pytest

from kavka_broker.core.authentication.signing_keys import ALGORITHMS
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.conformance.security.test_oauthbearer import AUDIENCE, CLASSES, HOUR_SECONDS, NAME, OWN, claims, publishing
from tests.support.asking import ask_on
from tests.support.servers import free_port, start_apache_kafka, start_kavka
from tests.support.tokens import Issuer, encoded
from tests.support.wire import Connection

pytestmark = pytest.mark.java

ROUNDED_MS = 60_000
LET_IN, REFUSED, CLOSED = "let in", "refused", "closed"


@dataclass(frozen=True, slots=True)
class Issuers:
    """Authorization servers: those that both brokers trust, of RSA and of curves, and one that neither does."""

    rsa: Issuer
    curves: dict[str, Issuer]  # by the algorithm of its key
    stranger: Issuer  # with the id of the first one's key


@dataclass(frozen=True, slots=True)
class Sides:
    """The ports of Kavka and of Apache Kafka, and whom both trust."""

    ports: tuple[int, int]
    issuers: Issuers


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    directory, ports = tmp_path_factory.mktemp("issuers"), []
    made = [Issuer(directory / "one", curve, curve=curve) for curve in ("P-256", "P-384", "P-521", "Ed25519")]
    curves = {issuer.algorithm: issuer for issuer in made}
    issuers = Issuers(Issuer(directory / "one"), curves, Issuer(directory / "stranger"))
    with ExitStack() as stack:
        url = stack.enter_context(publishing(issuers.rsa.key_set(*made)))
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("JAVA_TOOL_OPTIONS", allowed)
        for start in (start_kavka, start_apache_kafka):
            port = free_port()
            server = start(tmp_path_factory.mktemp("broker"), settings(port, url))
            stack.callback(server.kill)
            ports.append(port)
        yield Sides((ports[0], ports[1]), issuers)


def settings(port: int, url: str) -> dict[str, str]:
    ports = {"PLAINTEXT": free_port(), "CLIENTS": port, "CONTROLLER": free_port()}
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in ports.items()),
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OWN}.sasl.jaas.config": f"{CLASSES}.OAuthBearerLoginModule required;",
        f"{OWN}.sasl.server.callback.handler.class": f"{CLASSES}.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": NAME,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.scope.claim.name": "scp",
    }


def verdict(port: int, message: bytes) -> tuple[object, ...]:
    """What becomes of a client's message: how long the login holds, to the minute, or that it is refused."""
    with Connection(("127.0.0.1", port)) as connection:
        ask_on(connection, SaslHandshakeRequest("OAUTHBEARER"), SaslHandshakeResponse, 1)
        try:
            answer = ask_on(connection, SaslAuthenticateRequest(message), SaslAuthenticateResponse, 2)
            if not answer.error_code and not answer.auth_bytes:
                return LET_IN, round(answer.session_lifetime_ms / ROUNDED_MS)
            status = json.loads(bytes(answer.auth_bytes))["status"] if answer.auth_bytes else ""
            if not answer.error_code:
                answer = ask_on(connection, SaslAuthenticateRequest(b"\x01"), SaslAuthenticateResponse, 2)
            return REFUSED, answer.error_code, status
        except ConnectionResetError:
            return (CLOSED,)


def first(token: str, user: str = "") -> bytes:
    return f"n,{f'a={user}' if user else ''},\x01auth=Bearer {token}\x01\x01".encode()


Make = Callable[[Issuers], str]


def of(
    algorithm: str = "RS256",
    seconds: float = HOUR_SECONDS,
    without: str = "",
    header: Any = None,
    later: Mapping[str, float] = MappingProxyType({}),
    **changed: Any,
) -> Make:
    """Makes a token of a trusted issuer, with changes to its claims and its header. `later` are moments, in seconds
    from when it is made.
    """

    def make(issuers: Issuers) -> str:
        moments = {name: time.time() + after for name, after in later.items()}
        said = {name: value for name, value in claims(seconds, **changed, **moments).items() if name != without}
        issuer = issuers.curves.get(algorithm, issuers.rsa)
        return issuer.token(said, algorithm, **(header or {}))

    return make


def by_secret(issuers: Issuers) -> str:
    """A token whose shared secret is the text of the public key, as broken libraries take it."""
    covered = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "first"}, claims()))
    return f"{covered}.{encoded(digest(json.dumps(issuers.rsa.key).encode(), covered.encode(), 'sha256'))}"


def unsigned(issuers: Issuers) -> str:
    del issuers
    return ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "none"}, claims())) + "."


def changed(issuers: Issuers) -> str:
    """The signature of one token under the claims of another."""
    right, root = issuers.rsa.token(claims()), issuers.rsa.token(claims(sub="root"))
    return ".".join([*root.split(".")[:2], right.split(".")[2]])


TOKENS: dict[str, Make] = {
    **{algorithm: of(algorithm) for algorithm in ALGORITHMS},
    "expired": of(seconds=-60),
    "not yet valid": of(later={"nbf": 600}),
    "valid within the skew": of(later={"nbf": 10}),
    "issued later": of(later={"iat": 600}),
    "no expiry": of(without="exp"),
    "no time of issue": of(without="iat"),
    "an expiry that is a text": of(exp="tomorrow"),
    "another issuer": of(iss="https://other"),
    "no issuer": of(without="iss"),
    "another audience": of(aud="mail"),
    "an audience among others": of(aud=["mail", AUDIENCE]),
    "audiences of others": of(aud=["mail", "news"]),
    "no audience": of(without="aud"),
    "no subject": of(without="sub"),
    "an empty subject": of(sub=""),
    "a blank subject": of(sub="  "),
    "a subject that is a number": of(sub=7),
    "spaces around the subject": of(sub=" alice "),
    "an unknown key": of(header={"kid": "second"}),
    "the key of another kind": of(header={"kid": "P-256"}),
    "no type": of(header={"typ": None}),
    "signed by a stranger": lambda issuers: issuers.stranger.token(claims()),
    "other claims": changed,
    "no signature": unsigned,
    "a shared secret": by_secret,
    "another algorithm named": of("RS256", header={"alg": "RS512"}),
    "a scope": of(scp="read"),
    "scopes": of(scp=["read", "write"]),
    "no scopes": of(scp=[]),
    "a blank scope": of(scp=" "),
    "a scope twice": of(scp=["read", "read"]),
    "a scope twice under the usual name": of(scope=["read", "read"]),
    "huge": of(padding="x" * 30_000),
    "no token": lambda _: "abc",
    "two parts": lambda issuers: issuers.rsa.token(claims()).rpartition(".")[0],
    "four parts": lambda issuers: issuers.rsa.token(claims()) + ".x",
}


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_has_the_same_verdict(sides: Sides, name: str) -> None:
    token = TOKENS[name](sides.issuers)
    kavka, kafka = (verdict(port, first(token)) for port in sides.ports)
    assert kavka == kafka


#: Where Kavka differs: a session of no time where Apache Kafka refuses, and no extension where it knows one.
OTHERWISE: dict[str, tuple[Make, str, str]] = {
    "expired within the skew": (of(seconds=-10), LET_IN, REFUSED),
    "extensions to be understood": (of(header={"crit": ["b64"], "b64": True}), REFUSED, LET_IN),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_token_has_another_verdict(sides: Sides, name: str) -> None:
    make, *expected = OTHERWISE[name]
    token = make(sides.issuers)
    assert [verdict(port, first(token))[0] for port in sides.ports] == expected


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_a_user_that_is_asked_for_has_the_same_verdict(sides: Sides, user: str) -> None:
    message = first(sides.issuers.rsa.token(claims()), user)
    kavka, kafka = (verdict(port, message) for port in sides.ports)
    assert kavka == kafka
