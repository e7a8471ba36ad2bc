"""SCRAM over raw frames, and what is kept of passwords: Kavka and Apache Kafka give the same answers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

import pytest

from kavka_broker.core.authentication.scram import SHA_256, SHA_512, salted
from kavka_broker.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kavka_broker.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kavka_broker.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kavka_broker.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.conformance.security.test_scram import settings
from tests.support.asking import ask, ask_on
from tests.support.servers import Server, free_port, start_apache_kafka, start_kavka
from tests.support.waiting import until_outside
from tests.support.wire import Connection
from tests.unit.authentication.scripted import PASSWORD, SALT, last

pytestmark = pytest.mark.java

FIRST = b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"
Last = Callable[[bytes, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Asked:
    """A broker and its port for clients that log in."""

    server: Server
    port: int


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Asked]]:
    """Kavka and Apache Kafka, each with one user."""
    found = []
    with ExitStack() as stack:
        for start in (start_kavka, start_apache_kafka):
            port = free_port()
            server = start(tmp_path_factory.mktemp("scram"), settings(free_port(), port, free_port()))
            stack.callback(server.kill)
            for mechanism in (SHA_256, SHA_512):
                assert alter(server, [], [upsertion("user", mechanism.number)]) == {"user": (0, None)}
            found.append(Asked(server, port))
            # Apache Kafka's broker hears of a user a little after its controller has answered.
            until_outside(partial(lets_in, port))
        yield found


def upsertion(
    user: str, mechanism: int = 1, iterations: int = 4096, salt: bytes = SALT, password: bytes | None = None
) -> ScramCredentialUpsertion:
    made = salted(SHA_512 if mechanism == SHA_512.number else SHA_256, PASSWORD, SALT, 4096)
    return ScramCredentialUpsertion(user, mechanism, iterations, salt, made if password is None else password)


def alter(
    server: Server, deletions: Sequence[ScramCredentialDeletion], upsertions: Sequence[ScramCredentialUpsertion]
) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(list(deletions), list(upsertions))
    answer = ask(server.address, request, AlterUserScramCredentialsResponse)
    return {result.user: (result.error_code, result.error_message) for result in answer.results}


ALTERATIONS: dict[str, tuple[list[ScramCredentialDeletion], list[ScramCredentialUpsertion]]] = {
    "nothing": ([], []),
    "two users": ([], [upsertion("a"), upsertion("b", 2)]),
    "a mechanism that is unknown": ([], [upsertion("a", 0)]),
    "a mechanism that there is not": ([], [upsertion("a", 3)]),
    "to delete a mechanism that there is not": ([ScramCredentialDeletion("a", 3)], []),
    "no name": ([], [upsertion("")]),
    "to delete without a name": ([ScramCredentialDeletion("", 1)], []),
    "too few iterations": ([], [upsertion("a", 1, 4095)]),
    "too many iterations": ([], [upsertion("a", 1, 16_385)]),
    "as many as may be": ([], [upsertion("a", 1, 16_384)]),
    "negative iterations": ([], [upsertion("a", 1, -1)]),
    "an empty salt": ([], [upsertion("e", 1, 4096, b"")]),
    "to delete what is not there": ([ScramCredentialDeletion("nobody", 1)], []),
    "one mechanism twice": ([], [upsertion("d"), upsertion("d", 1, 8192)]),
    "to delete one twice": ([ScramCredentialDeletion("user", 1), ScramCredentialDeletion("user", 1)], []),
    "to delete and to give one": ([ScramCredentialDeletion("user", 2)], [upsertion("user", 2)]),
    "to delete one and to give the other": ([ScramCredentialDeletion("nobody", 2)], [upsertion("nobody", 1)]),
    "a good user beside a bad one": ([], [upsertion("g"), upsertion("h", 1, 1)]),
    "a user with signs": ([], [upsertion("=2C, é")]),
}


@pytest.mark.parametrize("asked", ALTERATIONS)
def test_an_alteration_is_answered_alike(both: list[Asked], asked: str) -> None:
    kavka, kafka = (alter(side.server, *ALTERATIONS[asked]) for side in both)
    assert kavka == kafka


def test_both_mechanisms_of_a_user_are_given_in_one_request(both: list[Asked]) -> None:
    """As KIP-554 says it and Kafka's documents show it; Apache Kafka's controller refuses it."""
    kavka, kafka = (alter(side.server, [], [upsertion("c"), upsertion("c", 2)]) for side in both)
    assert kavka == {"c": (0, None)}
    assert kafka["c"][0] == 92
    alter(both[0].server, [ScramCredentialDeletion("c", 1)], [])
    alter(both[0].server, [ScramCredentialDeletion("c", 2)], [])


NAMED: dict[str, list[str] | None] = {
    "all": None,
    "nobody": [],
    "one": ["user"],
    "one that there is not": ["stranger"],
    "one twice": ["user", "user"],
    "one of each": ["user", "stranger"],
}


def described(server: Server, names: list[str] | None) -> object:
    users = None if names is None else [UserName(name) for name in names]
    answer = ask(server.address, DescribeUserScramCredentialsRequest(users), DescribeUserScramCredentialsResponse)
    results = {
        result.user: (result.error_code, sorted((info.mechanism, info.iterations) for info in result.credential_infos))
        for result in answer.results
    }
    return answer.error_code, results


@pytest.mark.parametrize("named", NAMED)
def test_users_are_described_alike(both: list[Asked], named: str) -> None:
    """After the alterations above both have the same users, in whichever order the tests ran; Apache Kafka's broker
    tells of them a little after its controller has.
    """
    for side in both:
        for deletions, upsertions in ALTERATIONS.values():
            alter(side.server, deletions, upsertions)
    kavka = described(both[0].server, NAMED[named])
    with suppress(AssertionError):  # said below, with the difference
        until_outside(lambda: described(both[1].server, NAMED[named]) == kavka)
    assert described(both[1].server, NAMED[named]) == kavka


def right(first: bytes, answer: bytes) -> bytes:
    return last(SHA_256, PASSWORD, first, answer)


def unproved(text: str) -> Last:
    """A last message whose proof covers another text than is expected; {nonce} stands for the whole nonce."""

    def made(first: bytes, answer: bytes) -> bytes:
        nonce = answer.decode().split(",")[0].removeprefix("r=")
        return last(SHA_256, PASSWORD, first, answer, text.format(nonce=nonce))

    return made


def lets_in(port: int) -> bool:
    return [code for code, *_ in played(port, FIRST, right)] == [0, 0]


LOGINS: dict[str, tuple[bytes, Last]] = {
    "the usual": (FIRST, right),
    "the same authorization id": (FIRST.replace(b"n,,", b"n,a=user,"), right),
    "an extension": (FIRST + b",x=y", right),
    "another authorization id": (FIRST.replace(b"n,,", b"n,a=other,"), right),
    "a user that there is not": (FIRST.replace(b"user", b"nobody"), right),
    "a channel that could be bound": (FIRST.replace(b"n,,", b"y,,"), right),
    "a channel that is bound": (FIRST.replace(b"n,,", b"p=tls-unique,,"), right),
    "no nonce": (b"n,,n=user", right),
    "nothing": (b"", right),
    "bytes that are no text": (b"\xff\xfe", right),
    "a wrong password": (FIRST, lambda first, answer: last(SHA_256, "guess", first, answer)),
    "the first message again": (FIRST, lambda first, _: first),
    "an empty last message": (FIRST, lambda *_: b""),
    "no proof": (FIRST, lambda first, answer: right(first, answer).partition(b",p=")[0]),
    "the client's nonce alone": (FIRST, unproved("c=biws,r=fyko+d2lbbFgONRv9qkxdawL")),
    "a nonce that goes on": (FIRST, unproved("c=biws,r={nonce}x")),
}


def played(port: int, first: bytes, make: Last) -> list[tuple[int, str | None, bytes]]:
    """The code and words of each answer, and whether tokens were in it."""
    seen = list[tuple[int, str | None, bytes]]()
    with Connection(("127.0.0.1", port)) as connection:
        ask_on(connection, SaslHandshakeRequest("SCRAM-SHA-256"), SaslHandshakeResponse, 1)
        begun = ask_on(connection, SaslAuthenticateRequest(first), SaslAuthenticateResponse, 2)
        seen.append((begun.error_code, begun.error_message, bytes(begun.auth_bytes)[:2]))
        if not begun.error_code:
            token = make(first, bytes(begun.auth_bytes))
            ended = ask_on(connection, SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2)
            seen.append((ended.error_code, ended.error_message, bytes(ended.auth_bytes)[:2]))
    return seen


@pytest.mark.parametrize("login", LOGINS)
def test_a_login_is_answered_alike(both: list[Asked], login: str) -> None:
    kavka, kafka = (played(side.port, *LOGINS[login]) for side in both)
    assert kavka == kafka


#: Where the RFC says otherwise than Apache Kafka does, with the codes of both; None: it closes the connection.
OTHERWISE: dict[str, tuple[bytes, Last, list[int], list[int] | None]] = {
    "a mandatory extension": (FIRST.replace(b"n=user", b"m=x,n=user"), right, [58], [0, 58]),
    "an extension at the end": (FIRST, unproved("c=biws,r={nonce},x=y"), [0, 0], [0, 58]),
    "another hash": (FIRST, lambda first, answer: last(SHA_512, PASSWORD, first, answer), [0, 58], None),
    "a short proof": (
        FIRST,
        lambda first, answer: right(first, answer).partition(b",p=")[0] + b",p=AAAA",
        [0, 58],
        None,
    ),
}


@pytest.mark.parametrize("login", OTHERWISE)
def test_a_login_is_answered_as_the_rfc_says(both: list[Asked], login: str) -> None:
    first, make, *expected = OTHERWISE[login]
    for side, codes in zip(both, expected, strict=True):
        if codes is None:
            with pytest.raises(ConnectionResetError):
                played(side.port, first, make)
        else:
            assert [code for code, *_ in played(side.port, first, make)] == codes


def test_a_last_message_is_not_taken_twice(both: list[Asked]) -> None:
    """What was heard of a login lets nobody in: the server's nonce is another."""
    for side in both:
        heard: list[bytes] = []

        def hear(first: bytes, answer: bytes, heard: list[bytes] = heard) -> bytes:
            heard.append(right(first, answer))
            return heard[0]

        assert [code for code, *_ in played(side.port, FIRST, hear)] == [0, 0]
        assert [code for code, *_ in played(side.port, FIRST, hear)] == [0, 58]
