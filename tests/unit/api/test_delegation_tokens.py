"""Delegation tokens on a node that runs: who may ask for them, who logs in by one, and who sees whose."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.core.authentication.scram import SHA_256
from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import CreateAclsResponse
from kavka_broker.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kavka_broker.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kavka_broker.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kavka_broker.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
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
from kavka_broker.request.envelopes import decode_principal, encode_principal
from tests.support.in_process import Client, InProcess, running
from tests.unit.authentication.scripted import last

E = ErrorCode
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_alice="a" user_bob="b" user_carol="c";',
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": "sesame",
    "delegation.token.expiry.time.ms": "1000000",
}
GUARDED = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS;User:node"}
PASSWORDS = {"alice": b"a", "bob": b"b", "carol": b"c"}
Scenario = Callable[[InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario, **changed: str) -> None:
    async def run() -> None:
        settings = {**SETTINGS, **{name.replace("_", "."): text for name, text in changed.items()}}
        async with running(directory, settings) as inside:
            await scenario(inside)

    asyncio.run(run())


async def user(inside: InProcess, name: str) -> Client:
    """A client that has logged in by its password."""
    client = await inside.connect()
    await client.call(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
    token = b"\0" + name.encode() + b"\0" + PASSWORDS[name]
    answer = await client.call(SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2)
    assert answer.error_code == E.NONE, answer.error_message
    return client


async def by_token(inside: InProcess, token_id: str, secret: bytes) -> tuple[Client, SaslAuthenticateResponse]:
    """A client that tries to log in by a token, and the last answer to that."""
    client, first = await inside.connect(), f"n,,n={token_id},r=fyko+d2lbbFgONRv9qkxdawL,tokenauth=true".encode()
    await client.call(SaslHandshakeRequest(SHA_256.name), SaslHandshakeResponse, 1)
    answer = await client.call(SaslAuthenticateRequest(first), SaslAuthenticateResponse, 2)
    if answer.error_code == E.NONE:
        proof = last(SHA_256, b64encode(secret).decode(), first, bytes(answer.auth_bytes))
        answer = await client.call(SaslAuthenticateRequest(proof), SaslAuthenticateResponse, 2)
    return client, answer


async def create(
    client: Client,
    *,
    owner: str | None = None,
    owner_type: str = "User",
    renewers: tuple[str, ...] = (),
    version: int = 3,
) -> CreateDelegationTokenResponse:
    named = [CreatableRenewers(*renewer.split(":")) for renewer in renewers]
    none = None if version >= 3 else ""
    request = CreateDelegationTokenRequest(none if owner is None else owner_type, owner or none, named, -1)
    return await client.call(request, CreateDelegationTokenResponse, version)


async def renew(client: Client, secret: bytes, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
    request = RenewDelegationTokenRequest(secret, period_ms)
    answer = await client.call(request, RenewDelegationTokenResponse, version)
    return answer.error_code, answer.expiry_timestamp_ms


async def expire(client: Client, secret: bytes, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
    request = ExpireDelegationTokenRequest(secret, period_ms)
    answer = await client.call(request, ExpireDelegationTokenResponse, version)
    return answer.error_code, answer.expiry_timestamp_ms


async def describe(
    client: Client, owners: list[str] | None = None, version: int = 3
) -> DescribeDelegationTokenResponse:
    named = None if owners is None else [DescribeDelegationTokenOwner("User", name) for name in owners]
    return await client.call(DescribeDelegationTokenRequest(named), DescribeDelegationTokenResponse, version)


async def seen(client: Client, owners: list[str] | None = None) -> list[str]:
    answer = await describe(client, owners)
    assert answer.error_code == E.NONE
    return [token.token_id for token in answer.tokens]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_lets_in_as_its_owner_and_what_was_answered_is_described(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess) -> None:
        alice = await user(inside, "alice")
        made = await create(alice, renewers=("User:bob",), version=version)
        assert (made.error_code, made.principal_type, made.principal_name) == (E.NONE, "User", "alice")
        assert made.token_requester_principal_name == ("alice" if version == 3 else "")
        assert made.expiry_timestamp_ms - made.issue_timestamp_ms == 1_000_000
        assert made.max_timestamp_ms - made.issue_timestamp_ms == 604_800_000
        assert len(made.hmac) == 64
        (told,) = (await describe(alice, version=version)).tokens
        assert (told.token_id, bytes(told.hmac)) == (made.token_id, bytes(made.hmac))
        assert (told.issue_timestamp, told.expiry_timestamp) == (made.issue_timestamp_ms, made.expiry_timestamp_ms)
        assert [(one.principal_type, one.principal_name) for one in told.renewers] == [("User", "bob")]
        client, answer = await by_token(inside, made.token_id, bytes(made.hmac))
        assert answer.error_code == E.NONE
        assert 0 < answer.session_lifetime_ms <= 1_000_000
        assert (await client.call(MetadataRequest([]), MetadataResponse, 9)).brokers
        (peer,) = [each.peer for each in inside.server.addresses.of_brokers[0].connections if each.peer.is_by_token]
        assert peer.user == "alice"

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [1, 2])
def test_a_token_is_renewed_and_ended_by_its_secret(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess) -> None:
        alice, bob = await user(inside, "alice"), await user(inside, "bob")
        made = await create(alice, renewers=("User:bob",))
        secret = bytes(made.hmac)
        code, expires_ms = await renew(bob, secret, 500_000, version)
        assert code == E.NONE
        assert made.issue_timestamp_ms + 500_000 <= expires_ms < made.expiry_timestamp_ms
        (told,) = (await describe(bob)).tokens
        assert told.expiry_timestamp == expires_ms
        code, sooner_ms = await expire(alice, secret, 200_000, version)
        assert (code, sooner_ms - expires_ms < 0) == (E.NONE, True)
        code, ended_ms = await expire(alice, secret, -1, version)
        assert (code, made.issue_timestamp_ms <= ended_ms < sooner_ms) == (E.NONE, True)
        assert await renew(alice, secret, -1, version) == (E.DELEGATION_TOKEN_NOT_FOUND, 0)
        assert (await by_token(inside, made.token_id, secret))[1].error_code == E.SASL_AUTHENTICATION_FAILED
        assert await seen(alice) == []

    play(tmp_path, scenario)


def test_who_has_logged_in_by_a_token_may_not_ask_for_tokens(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        made = await create(await user(inside, "alice"))
        client, _ = await by_token(inside, made.token_id, bytes(made.hmac))
        await expect_not_allowed(client, bytes(made.hmac), owner="alice")

    play(tmp_path, scenario)


async def expect_not_allowed(client: Client, secret: bytes, owner: str) -> None:
    made = await create(client, owner=owner)
    assert (made.error_code, made.principal_name) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, owner)
    assert (made.issue_timestamp_ms, made.max_timestamp_ms, made.token_id, bytes(made.hmac)) == (-1, -1, "", b"")
    assert await renew(client, secret) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
    assert await expire(client, secret) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
    assert (await describe(client)).error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("renewers", [1_000, 20_000])
def test_a_request_with_very_many_renewers_is_answered(tmp_path: Path, renewers: int) -> None:
    """Of more than 16 KiB, read at once or by a thread: it closed the connection."""

    async def scenario(inside: InProcess) -> None:
        alice = await user(inside, "alice")
        made = await create(alice, renewers=tuple(f"User:{'r' * 20}{number}" for number in range(renewers)))
        assert (made.error_code, made.principal_name, bytes(made.hmac)) == (E.INVALID_REQUEST, "alice", b"")
        assert (await create(alice, renewers=("User:bob",))).error_code == E.NONE
        assert len(await seen(alice)) == 1

    play(tmp_path, scenario)


def test_no_token_is_made_for_a_user_whose_name_is_too_long_to_log_in(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        alice = await user(inside, "alice")
        assert (await create(alice, owner="u" * 257)).error_code == E.INVALID_REQUEST
        assert (await create(alice, renewers=("User:" + "u" * 257,))).error_code == E.INVALID_REQUEST
        made = await create(alice, owner="u" * 256)
        client, answer = await by_token(inside, made.token_id, bytes(made.hmac))
        assert answer.error_code == E.NONE
        client.close()

    play(tmp_path, scenario)


@pytest.mark.parametrize("of", ["broker", "controller"])
def test_nor_may_who_has_not_logged_in(tmp_path: Path, of: str) -> None:
    async def scenario(inside: InProcess) -> None:
        secret = bytes((await create(await user(inside, "alice"))).hmac)
        if of == "controller":
            client = await inside.connect(to_controller=True)
            assert (await create(client)).error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            assert await renew(client, secret) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
            return
        host, port = "127.0.0.1", inside.server.advertised[1].port
        client = Client(*await asyncio.open_connection(host, port))
        await expect_not_allowed(client, secret, owner="alice")
        client.close()

    play(tmp_path, scenario)


@pytest.mark.parametrize("key", ["", None])
def test_without_a_key_there_are_no_tokens(tmp_path: Path, key: str | None) -> None:
    async def scenario(inside: InProcess) -> None:
        alice = await user(inside, "alice")
        assert (await create(alice)).error_code == E.DELEGATION_TOKEN_AUTH_DISABLED
        assert (await renew(alice, b"x"))[0] == E.DELEGATION_TOKEN_AUTH_DISABLED
        assert (await expire(alice, b"x"))[0] == E.DELEGATION_TOKEN_AUTH_DISABLED
        assert (await describe(alice)).error_code == E.DELEGATION_TOKEN_AUTH_DISABLED
        assert (await by_token(inside, "t", b"x"))[1].error_code == E.SASL_AUTHENTICATION_FAILED

    settings = {name: text for name, text in SETTINGS.items() if name != "delegation.token.secret.key"}
    if key is not None:
        settings["delegation.token.secret.key"] = key

    async def run() -> None:
        async with running(tmp_path, settings) as inside:
            await scenario(inside)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("secret", "code"), [(b"", E.DELEGATION_TOKEN_NOT_FOUND), (b"x" * 64, E.DELEGATION_TOKEN_NOT_FOUND)]
)
def test_a_secret_of_no_token_is_not_found(tmp_path: Path, secret: bytes, code: ErrorCode) -> None:
    async def scenario(inside: InProcess) -> None:
        alice = await user(inside, "alice")
        await create(alice)
        assert (await renew(alice, secret))[0] == code
        assert (await expire(alice, secret))[0] == code

    play(tmp_path, scenario)


@pytest.mark.parametrize(("renewer", "owner_type"), [("Group:a", "User"), ("User:bob", "Group")])
def test_owners_and_renewers_are_users(tmp_path: Path, renewer: str, owner_type: str) -> None:
    async def scenario(inside: InProcess) -> None:
        made = await create(await user(inside, "alice"), owner="bob", owner_type=owner_type, renewers=(renewer,))
        assert (made.error_code, made.principal_type) == (E.INVALID_PRINCIPAL_TYPE, owner_type)

    play(tmp_path, scenario)


TOPIC, USER, TOKEN = 2, 7, 6
DESCRIBE, CREATE_TOKENS, DESCRIBE_TOKENS = 8, 13, 14


async def allow(inside: InProcess, name: str, resource_type: int, resource: str, operation: int) -> None:
    client = Client(*await asyncio.open_connection("127.0.0.1", inside.server.advertised[1].port))
    rule = AclCreation(resource_type, resource, 3, f"User:{name}", "*", operation, 3)
    answer = await client.call(CreateAclsRequest([rule]), CreateAclsResponse, 3)
    assert answer.results[0].error_code == E.NONE, answer.results[0].error_message
    client.close()


def test_for_another_user_it_takes_a_right_and_the_token_is_that_users(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        alice = await user(inside, "alice")
        assert (await create(alice, owner="alice")).error_code == E.NONE
        refused = await create(alice, owner="bob")
        assert (refused.error_code, refused.principal_name) == (E.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "bob")
        assert refused.token_requester_principal_name == "alice"
        await allow(inside, "alice", USER, "User:bob", CREATE_TOKENS)
        made = await create(alice, owner="bob")
        assert (made.error_code, made.principal_name) == (E.NONE, "bob")
        client, _ = await by_token(inside, made.token_id, bytes(made.hmac))
        assert (await client.call(MetadataRequest([]), MetadataResponse, 9)).brokers
        assert (await renew(alice, bytes(made.hmac)))[0] == E.DELEGATION_TOKEN_OWNER_MISMATCH
        assert (await renew(await user(inside, "bob"), bytes(made.hmac)))[0] == E.NONE

    play(tmp_path, scenario, **{name.replace(".", "_"): text for name, text in GUARDED.items()})


def test_a_client_sees_its_own_tokens_and_others_by_a_right(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        alice, bob, carol = [await user(inside, name) for name in PASSWORDS]
        first = (await create(alice, renewers=("User:carol",))).token_id
        second = (await create(bob)).token_id
        assert [await seen(client) for client in (alice, bob, carol)] == [[first], [second], [first]]
        assert await seen(bob, ["alice"]) == []
        assert await seen(carol, ["alice", "bob"]) == [first]
        assert await seen(carol, []) == []
        await allow(inside, "bob", TOKEN, first, DESCRIBE)
        assert await seen(bob) == [first, second]
        assert await seen(bob, ["alice"]) == [first]
        await allow(inside, "carol", USER, "User:bob", DESCRIBE_TOKENS)
        assert await seen(carol) == [first, second]

    play(tmp_path, scenario, **{name.replace(".", "_"): text for name, text in GUARDED.items()})


def test_a_controller_removes_tokens_that_are_over(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        alice = await user(inside, "alice")
        made = await create(alice)
        assert (await expire(alice, bytes(made.hmac), 0))[0] == E.NONE
        async with asyncio.timeout(60):
            while len(inside.broker.metadata.tokens):
                await asyncio.sleep(0)

    play(tmp_path, scenario, delegation_token_expiry_check_interval_ms="20")


def test_a_principal_in_an_envelope_says_whether_it_has_logged_in_by_a_token() -> None:
    for is_by_token in (True, False):
        principal = decode_principal(encode_principal("alice", is_by_token=is_by_token))
        assert (principal.name, principal.token_authenticated) == ("alice", is_by_token)
