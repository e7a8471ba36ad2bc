"""Delegation tokens over raw frames: Kavka and Apache Kafka give the same answers, and let in the same clients."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import time_ns
from typing import Any

import pytest

from kavka_broker.core.authentication.scram import SHA_256, SHA_512, Mechanism
from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import CreateAclsResponse
from kavka_broker.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kavka_broker.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kavka_broker.protocol.messages.describe_acls_request import DescribeAclsRequest
from kavka_broker.protocol.messages.describe_acls_response import DescribeAclsResponse
from kavka_broker.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kavka_broker.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from kavka_broker.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kavka_broker.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kavka_broker.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.conformance.security.test_plain import MODULE as PLAIN_MODULE
from tests.conformance.security.test_scram import MODULE as SCRAM_MODULE
from tests.support.asking import ask, ask_on
from tests.support.servers import Server, free_port, start_apache_kafka, start_kavka
from tests.support.waiting import until_outside
from tests.support.wire import Connection
from tests.unit.authentication.scripted import last

pytestmark = pytest.mark.java

USERS = ("alice", "bob", "carol", "dave")
MAX_MS, RENEWAL_MS = 90_000_000, 36_000_000  # whole minutes, with half a one before another is told
ROUNDED_MS = 60_000
NO_TOKEN = -1
FIRST = "n,,n={id},r=fyko+d2lbbFgONRv9qkxdawL"


@dataclass(slots=True)
class Side:
    """One of both brokers: connections of users that have logged in by a password, and the tokens made so far."""

    server: Server
    port: int
    stack: ExitStack
    users: dict[str, Connection] = field(default_factory=dict)
    tokens: dict[str, CreateDelegationTokenResponse] = field(default_factory=dict)

    def connect(self) -> Connection:
        return self.stack.enter_context(Connection(("127.0.0.1", self.port)))

    def user(self, name: str) -> Connection:
        """A connection of a user; nobody's is the one to the listener without logins."""
        if name not in self.users and name == "nobody":
            self.users[name] = self.stack.enter_context(Connection(self.server.address))
        elif name not in self.users:
            connection = self.users[name] = self.connect()
            ask_on(connection, SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
            proof = SaslAuthenticateRequest(f"\0{name}\0of {name}".encode())
            assert ask_on(connection, proof, SaslAuthenticateResponse, 2).error_code == 0
        return self.users[name]

    def expiry_of(self, token: str) -> int:
        """When a token expires, as its owner is told by now: Apache Kafka's broker hears of it a little later."""
        made = self.tokens[token]
        request = DescribeDelegationTokenRequest(None)
        answer = ask_on(self.user(made.principal_name), request, DescribeDelegationTokenResponse, 3)
        return next((one.expiry_timestamp for one in answer.tokens if one.token_id == made.token_id), NO_TOKEN)

    def secret(self, token: str) -> bytes:
        return bytes(self.tokens[token].hmac) if token in self.tokens else token.encode()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Side]]:
    found = []
    with ExitStack() as stack:
        for start in (start_kavka, start_apache_kafka):
            port = free_port()
            server = start(tmp_path_factory.mktemp("tokens"), settings(port))
            stack.callback(server.kill)
            found.append(Side(server, port, stack))
            allow(server, 7, "User:dave", "alice", 13)  # CREATE_TOKENS
            allow(server, 7, "User:bob", "carol", 14)  # DESCRIBE_TOKENS
        yield found


def settings(port: int) -> dict[str, str]:
    ports = {"PLAINTEXT": free_port(), "CLIENTS": port, "CONTROLLER": free_port()}
    users = " ".join(f'user_{user}="of {user}"' for user in USERS)
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in ports.items()),
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
        "listener.name.clients.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "listener.name.clients.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "delegation.token.secret.key": "shared",
        "delegation.token.max.lifetime.ms": str(MAX_MS),
        "delegation.token.expiry.time.ms": str(RENEWAL_MS),
        "authorizer.class.name": STANDARD,
        "super.users": "User:ANONYMOUS",
    }


def allow(server: Server, kind: int, resource: str, user: str, operation: int) -> None:
    """Add a rule, and wait until the broker has heard of it: Apache Kafka's does a little later."""
    rule = AclCreation(kind, resource, 3, f"User:{user}", "*", operation, 3)
    answer = ask(server.address, CreateAclsRequest([rule]), CreateAclsResponse, 3)
    assert answer.results[0].error_code == 0
    same = DescribeAclsRequest(kind, resource, 3, f"User:{user}", "*", operation, 3)
    until_outside(lambda: ask(server.address, same, DescribeAclsResponse, 3).resources)


Told = tuple[Any, ...]
Step = Callable[[Side], Told]


def since(moment_ms: int, issued_ms: int) -> object:
    """A time of an answer, as what both must say: from the making of the token on, to the minute."""
    return moment_ms if moment_ms <= 0 else round((moment_ms - issued_ms) / ROUNDED_MS)


def create(
    user: str, token: str = "t", owner: str | None = None, owner_type: str | None = "User", version: int = 3,
    renewers: tuple[str, ...] = (), lifetime_ms: int = -1,
) -> Step:  # fmt: skip
    def step(side: Side) -> Told:
        named = [CreatableRenewers(*renewer.split(":")) for renewer in renewers]
        none = None if version >= 3 else ""
        request = CreateDelegationTokenRequest(owner_type if owner else none, owner or none, named, lifetime_ms)
        made = ask_on(side.user(user), request, CreateDelegationTokenResponse, version)
        if not made.error_code:
            side.tokens[token] = made
            until_outside(lambda: side.expiry_of(token) == made.expiry_timestamp_ms)
        moments = [since(at, made.issue_timestamp_ms) for at in (made.expiry_timestamp_ms, made.max_timestamp_ms)]
        parties = (made.principal_type, made.principal_name)
        asked = (made.token_requester_principal_type, made.token_requester_principal_name)
        return made.error_code, parties, asked, moments, len(made.token_id), len(made.hmac)

    return step


def renew(user: str, token: str = "t", period_ms: int = -1, version: int = 2) -> Step:
    def step(side: Side) -> Told:
        request = RenewDelegationTokenRequest(side.secret(token), period_ms)
        answer = ask_on(side.user(user), request, RenewDelegationTokenResponse, version)
        made = side.tokens.get(token)
        if not answer.error_code:
            until_outside(lambda: side.expiry_of(token) == answer.expiry_timestamp_ms)
        return answer.error_code, since(answer.expiry_timestamp_ms, made.issue_timestamp_ms if made else 0)

    return step


def expire(user: str, token: str = "t", period_ms: int = -1, version: int = 2) -> Step:
    def step(side: Side) -> Told:
        request = ExpireDelegationTokenRequest(side.secret(token), period_ms)
        answer = ask_on(side.user(user), request, ExpireDelegationTokenResponse, version)
        made = side.tokens.get(token)
        if not answer.error_code:
            wanted_ms = NO_TOKEN if period_ms < 0 else answer.expiry_timestamp_ms
            until_outside(lambda: side.expiry_of(token) == wanted_ms)
        return answer.error_code, since(answer.expiry_timestamp_ms, made.issue_timestamp_ms if made else 0)

    return step


def describe(user: str, *owners: str, of_all: bool = False, version: int = 3) -> Step:
    def step(side: Side) -> Told:
        named = None if of_all else [DescribeDelegationTokenOwner(*owner.split(":")) for owner in owners]
        request = DescribeDelegationTokenRequest(named)
        answer = ask_on(side.user(user), request, DescribeDelegationTokenResponse, version)
        ids = {made.token_id: token for token, made in side.tokens.items()}
        told = sorted(
            (
                ids[one.token_id],
                (one.principal_name, one.token_requester_principal_name),
                [(renewer.principal_type, renewer.principal_name) for renewer in one.renewers],
                since(one.expiry_timestamp, one.issue_timestamp),
                since(one.max_timestamp, one.issue_timestamp),
                bytes(one.hmac) == side.secret(ids[one.token_id]),
            )
            for one in answer.tokens
            if one.token_id in ids
        )
        return answer.error_code, told

    return step


def log_in(
    token: str = "t", mechanism: Mechanism = SHA_256, extension: str = ",tokenauth=true", secret: str | None = None,
    then: Message | None = None, kind: Any = MetadataResponse,
) -> Step:  # fmt: skip
    """Log in by a token, and ask for something; what was answered to both. The login's time is told in minutes."""

    def step(side: Side) -> Told:
        made, connection = side.tokens[token], side.connect()
        ask_on(connection, SaslHandshakeRequest(mechanism.name), SaslHandshakeResponse, 1)
        first = (FIRST.format(id=made.token_id) + extension).encode()
        answer = ask_on(connection, SaslAuthenticateRequest(first), SaslAuthenticateResponse, 2)
        if answer.error_code:
            return answer.error_code, answer.error_message
        password = b64encode(bytes(made.hmac)).decode() if secret is None else secret
        proof = last(mechanism, password, first, bytes(answer.auth_bytes))
        answer = ask_on(connection, SaslAuthenticateRequest(proof), SaslAuthenticateResponse, 2)
        if answer.error_code:
            return answer.error_code, answer.error_message
        served = ask_on(connection, then or MetadataRequest([]), kind, 2 if then is not None else 9)
        lifetime = round(answer.session_lifetime_ms / ROUNDED_MS)
        return answer.error_code, lifetime, getattr(served, "error_code", 0)

    return step


ALL = ("User:alice", "User:bob", "User:carol", "User:dave")
SEQUENCES: dict[str, list[Step]] = {
    "a token of one's own": [create("alice"), describe("alice", of_all=True), log_in(), log_in(mechanism=SHA_512)],
    "older versions": [
        create("alice", version=1), create("alice", "u", version=2), renew("alice", version=1),
        describe("alice", of_all=True, version=1), describe("alice", of_all=True, version=2),
        expire("alice", version=1),
    ],
    "lives": [create("alice", str(ms), lifetime_ms=ms) for ms in (-1, 0, 1_000_000, RENEWAL_MS, MAX_MS, 2**62)],
    "renewals": [create("alice")] + [renew("alice", period_ms=ms) for ms in (-1, 0, 600_000, RENEWAL_MS + 1, 2**62)],
    "no renewal beyond the end": [create("alice", lifetime_ms=1_200_000), renew("alice"), log_in()],
    "ends in a while": [create("alice")] + [expire("alice", period_ms=ms) for ms in (600_000, RENEWAL_MS, MAX_MS * 2)],
    "an end at once": [create("alice"), expire("alice"), renew("alice"), expire("alice"), log_in()],
    "the end of a negative period": [create("alice"), expire("alice", period_ms=-77)],
    "no secret": [renew("alice", ""), expire("alice", ""), renew("alice", "x" * 64)],
    "of somebody else": [create("alice"), renew("bob"), expire("bob"), describe("bob", "User:alice")],
    "a renewer": [
        create("alice", renewers=("User:bob", "User:carol")), renew("bob"), describe("carol", of_all=True),
        describe("bob", "User:alice"), describe("bob", "User:carol"), expire("carol"),
    ],
    "renewers that are no users": [
        create("alice", renewers=("User:bob", "Group:x")), create("alice", renewers=("a:",)),
    ],
    "for another user": [
        create("alice", owner="dave"), describe("alice", of_all=True), describe("dave", "User:dave"), renew("alice"),
        log_in(), expire("alice"), expire("dave"),
    ],
    "for another user without the right": [create("bob", owner="dave"), create("alice", owner="carol")],
    "for oneself by name": [create("bob", owner="bob")],
    "for no name": [create("bob", owner="")],
    "without the right for a group": [create("bob", owner="x", owner_type="Group")],
    "seen by a right": [
        create("bob", "b"), create("dave", "d"), describe("carol", *ALL), describe("carol", of_all=True),
    ],
    "of no owners": [
        create("alice"), describe("alice"), describe("alice", "User:nobody"), describe("alice", "Group:alice"),
    ],
    "without a login": [
        create("nobody"), create("nobody", owner="alice"), renew("nobody", "x"), expire("nobody", "x"),
        describe("nobody", of_all=True),
    ],
    "asked by who has logged in by a token": [
        create("alice"),
        log_in(then=CreateDelegationTokenRequest("", "", [], -1), kind=CreateDelegationTokenResponse),
        log_in(then=RenewDelegationTokenRequest(b"x", -1), kind=RenewDelegationTokenResponse),
        log_in(then=ExpireDelegationTokenRequest(b"x", -1), kind=ExpireDelegationTokenResponse),
        log_in(then=DescribeDelegationTokenRequest([]), kind=DescribeDelegationTokenResponse),
    ],
    "a wrong secret": [create("alice"), log_in(secret="guess"), log_in(secret="of alice"), log_in(secret="")],
    # One alone: of several Apache Kafka forgets the order, which a proof covers, and lets in as its hash tables fall.
    "extensions": [
        create("alice"), log_in(extension=",tokenauth=TRUE"), log_in(extension=",tokenauth=false"),
        log_in(extension=""), log_in(extension=",Tokenauth=true"), log_in(extension=",x=y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_sequence_is_answered_alike(both: list[Side], sequence: str) -> None:
    for side in both:
        end_all(side)
    for number, step in enumerate(SEQUENCES[sequence]):
        kavka, kafka = (step(side) for side in both)
        assert kavka == kafka, f"step {number}"


def end_all(side: Side) -> None:
    """Remove what tokens there are, of whichever test, and wait until the broker has heard of it."""
    side.tokens.clear()
    for user in USERS:
        for made in described(side, user):
            ask_on(
                side.user(user), ExpireDelegationTokenRequest(bytes(made.hmac), -1), ExpireDelegationTokenResponse, 2
            )
    until_outside(lambda: not any(described(side, user) for user in USERS))


def described(side: Side, user: str) -> list[DescribedDelegationToken]:
    """The tokens that a user sees; not those of a group, which Apache Kafka makes and nobody may end."""
    request = DescribeDelegationTokenRequest(None)
    found = ask_on(side.user(user), request, DescribeDelegationTokenResponse, 3).tokens
    return [token for token in found if token.principal_type == "User"]


def test_a_token_that_is_over_lets_nobody_in(both: list[Side]) -> None:
    """Apache Kafka answers the login as one of no time, and ends the connection at its first request."""
    kavka, kafka = both
    for side in both:
        create("alice")(side)
        code, _ = expire("alice", period_ms=0)(side)
        assert code == 0
        over_ms = side.expiry_of("t")
        until_outside(lambda over_ms=over_ms: time_ns() // 1_000_000 > over_ms)  # type: ignore[misc]
        assert renew("alice")(side)[0] == 66, "within the millisecond of its end it would be renewed"
    assert log_in()(kavka)[0] == 58
    with pytest.raises(ConnectionResetError):
        log_in()(kafka)


def test_a_token_is_of_a_user(both: list[Side]) -> None:
    """Apache Kafka makes one for a principal of any type, and lets in by it as the user of that name."""
    for side in both:
        allow(side.server, 7, "Group:dave", "alice", 13)
    request = CreateDelegationTokenRequest("Group", "dave", [], -1)
    codes = [ask_on(side.user("alice"), request, CreateDelegationTokenResponse, 3).error_code for side in both]
    assert codes == [67, 0]
