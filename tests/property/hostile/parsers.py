"""What reads bytes of strangers outside of requests: each of them with good inputs in which something was changed.

A reader takes an input or refuses it by its own error. Any other exception is an escape, and so is a user that a
changed login names.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from kavka_broker.core.authentication.distinguished_names import DerError, distinguished_name, subject_of
from kavka_broker.core.authentication.login import plain_user
from kavka_broker.core.authentication.oauthbearer import Exchange as TokenExchange
from kavka_broker.core.authentication.principal_mapping import parse_rules, user_of
from kavka_broker.core.authentication.scram import SHA_256, Exchange
from kavka_broker.core.authentication.scram_client import Client, LoginError
from kavka_broker.core.authentication.signing_keys import KeySetError, parse_keys
from kavka_broker.core.authentication.token_claims import TokenError, TokenJudge, TokenSettings
from kavka_broker.core.regular_expressions import Pattern, PatternError
from kavka_broker.core.telemetry.otlp import decode, with_attributes
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation
from kavka_operator.api.files import BadResourcesError, load_text
from tests.support.pushes import flow, gauge, histogram, metrics, point
from tests.support.tokens import Issuer
from tests.unit.authentication.scripted import FIRST, FIRST_ANSWER, LAST, NONCE, PASSWORD, kept

NOW_MS: Final = 1_800_000_000_000
CLAIMS: Final = {"sub": "alice", "iss": "i", "aud": "kafka", "iat": NOW_MS // 1000 - 60, "exp": NOW_MS // 1000 + 600}
LONG: Final = 5_000
CREDENTIAL: Final = kept(SHA_256)
PLAIN: Final = b"\0alice\0alice-secret"
PUSH: Final = metrics(
    gauge("g", 1.0, point(2, node="1")), flow("f", 3), histogram("h", 4, 5.0), flow("t", 6, temporality=2), key="value"
)
#: The subject CN=a, O=b of a certificate, in DER.
SUBJECT: Final = bytes.fromhex("3018310a300806035504030c0161310a3008060355040a0c0162")
RESOURCES: Final = b"""\
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main, labels: &a {x: "1"}}
spec:
  nodePools: [{name: nodes, replicas: 3}]
  listeners: [{name: PLAINTEXT, port: 9092}]
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: t, labels: *a}
spec: {clusterRef: {name: main}, partitions: 3, replicationFactor: 3, config: {retention.ms: 6.048e+08}}
"""
EXPRESSION: Final = b"^(a|b+)[^c-e]{2,5}(?:x*?y)\\d$"
RULES: Final = parse_rules(r"RULE:^CN=(.*?),O=(.*)$/$1@$2/L,DEFAULT")
SPLICES: Final = (
    b"",
    b"\0",
    b",",
    b"=",
    b"\\",
    b"\xff",
    b"%",
    b"-1",
    b"e",
    b"{",
    b"}",
    b"[",
    b"&a",
    b"*a",
    b"\n",
    b": ",
)


def changed(data: bytes, chance: Random) -> bytes:
    """Return the bytes with one to four changes, seldom with none: others, fewer, more, or very many."""
    spoilt = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 4))):
        at, until = sorted(chance.randrange(len(spoilt) + 1) for _ in range(2))
        match chance.randrange(7):
            case 0 | 1 if spoilt:
                spoilt[min(at, len(spoilt) - 1)] = chance.randrange(256)
            case 2:
                del spoilt[at : min(until, at + 8)]
            case 3:
                spoilt[at:at] = chance.choice(SPLICES)
            case 4:
                spoilt[at:at] = spoilt[at : min(until, at + 40)]
            case 5 if chance.random() < 0.05:
                spoilt[at:at] = chance.choice(SPLICES) * chance.randrange(LONG)
            case _:
                del spoilt[at:]
    return bytes(spoilt)


def scram(chance: Random) -> None:
    """Both messages of a client that logs in."""
    first, last = (changed(data, chance) if chance.random() < 0.6 else data for data in (FIRST, LAST))
    exchange = Exchange(SHA_256, lambda user, _: CREDENTIAL if user == "user" else None, NONCE)
    with suppress(BrokerError):
        answer, user = exchange.take(first)
        assert user is None, "nobody is known by a first message"
        assert answer
        _, user = exchange.take(last)
        assert user is None or (user, proof(last)) == ("user", proof(LAST)), (first, last)


def proof(message: bytes) -> bytes:
    """The last field of a message, in which nothing but the client's proof may be."""
    return message.rpartition(b",p=")[2].rstrip(b"=")


def scram_challenges(chance: Random) -> None:
    """What a node is answered that logs in at another."""
    client = Client(SHA_256, "user", PASSWORD, "rOprNGfwEbeRWgbNEkqO")
    client.first()
    with suppress(LoginError):
        client.proof(changed(FIRST_ANSWER, chance))
        client.check(changed(b"v=" + b64encode(chance.randbytes(32)), chance))
        raise AssertionError("a server that does not know the password was believed")


def plain(chance: Random) -> None:
    """A user and a password."""
    token = changed(PLAIN, chance)
    with suppress(BrokerError):
        assert plain_user(token, {"alice": "alice-secret"}) == "alice"
        assert token in {PLAIN, b"alice" + PLAIN}, token


def pushes(chance: Random) -> None:
    """Metrics that a client pushes."""
    data = changed(PUSH, chance)
    with suppress(ProtocolViolation):
        decode(data)
    with suppress(ProtocolViolation):
        with_attributes(data, [("a", "b")], 10_000)


def subjects(chance: Random) -> None:
    """The subject of a certificate, and the user that rules make of it."""
    data = changed(SUBJECT, chance)
    with suppress(DerError):
        user_of(distinguished_name(data), RULES)
    with suppress(DerError):
        subject_of(data)


def resource_files(chance: Random) -> None:
    """Resources that a pull request brings to `kavka apply`."""
    text = changed(RESOURCES, chance).decode(errors="replace")
    with suppress(BadResourcesError):
        load_text("any.yaml", text, {})


def expressions(chance: Random) -> None:
    """An expression by which a consumer chooses topics."""
    with suppress(PatternError):
        text = changed(EXPRESSION, chance).decode(errors="replace")
        Pattern.compile(text, is_of_java=chance.random() < 0.5).matches("aabbfghijxxy1")


class Tokens:
    """Tokens of an issuer, whose key is made with them."""

    def __init__(self, directory: Path) -> None:
        issuer = Issuer(directory, curve="P-256")
        self._keys = issuer.key_set()
        self._judge = TokenJudge(TokenSettings("file:///keys", "i", ("kafka",)), parse_keys(self._keys))
        self._token = issuer.token(CLAIMS)
        self._message = f"n,a=alice,\x01auth=Bearer {self._token}\x01\x01".encode()

    def messages(self, chance: Random) -> None:
        """The message around a token, and the byte that follows a refusal."""
        message = changed(self._message, chance)
        exchange = TokenExchange(self._judge, NOW_MS)
        with suppress(BrokerError):
            _, user = exchange.take(message)
            assert user in {None, "alice"}
            assert user is None or self._token.encode().rstrip(b"=")[:-1] in message, message
            exchange.take(changed(b"\x01", chance))

    def tokens(self, chance: Random) -> None:
        """A token by itself."""
        token = changed(self._token.encode(), chance).decode(errors="replace")
        with suppress(TokenError):
            assert self._judge.judge(token, NOW_MS).user == "alice"
            assert token[: len(self._token) - 1] == self._token[:-1], "the last letter has bits that say nothing"

    def key_sets(self, chance: Random) -> None:
        """A server's answer with keys."""
        with suppress(KeySetError):
            parse_keys(changed(self._keys, chance))


READERS: Final[Mapping[str, Callable[[Tokens, Random], None]]] = {
    "scram": lambda _, chance: scram(chance),
    "scram challenges": lambda _, chance: scram_challenges(chance),
    "plain": lambda _, chance: plain(chance),
    "oauthbearer messages": Tokens.messages,
    "tokens": Tokens.tokens,
    "key sets": Tokens.key_sets,
    "pushes": lambda _, chance: pushes(chance),
    "subjects": lambda _, chance: subjects(chance),
    "resource files": lambda _, chance: resource_files(chance),
    "expressions": lambda _, chance: expressions(chance),
}
"""Every reader by its name."""
