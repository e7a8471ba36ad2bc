"""What a client may do before its login, on a node that runs: little, and nothing of it is kept under its names."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from kavka_broker.core.names import NAME_CHARACTERS_MAX, shortened
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.support.in_process import Client, InProcess, running

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_alice="a";',
    "connection.failed.authentication.delay.ms": "0",
}
LONG = "x" * 32_000 + "\U0001f600"


def play(directory: Path, scenario: Callable[[InProcess], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory, SETTINGS) as inside:
            await scenario(inside)

    asyncio.run(run())


async def versions(client: Client, version: int = 0) -> ErrorCode:
    return ErrorCode((await client.call(ApiVersionsRequest("a", "1"), ApiVersionsResponse, version)).error_code)


async def log_in(client: Client, password: str = "a") -> ErrorCode:
    await client.call(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
    token = f"\0alice\0{password}".encode()
    return ErrorCode((await client.call(SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2)).error_code)


def test_a_second_question_for_versions_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        assert await versions(client) == ErrorCode.NONE
        client.send(ApiVersionsRequest(), 0)
        assert await client.is_closed()

    play(tmp_path, scenario)


def test_a_refused_version_may_be_followed_by_one_more(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        client.send(ApiVersionsRequest("a", "1"), 4)
        await client.receive(ApiVersionsResponse, 4)
        assert await log_in(client) == ErrorCode.NONE
        assert await versions(client) == ErrorCode.NONE, "after the login it may be asked for as often as one likes"
        assert await versions(client) == ErrorCode.NONE

        refused = await inside.connect()
        refused._writer.write(b"\0\0\0\x0c\0\x12\0\x63\0\0\0\x07\xff\xff\0\0")  # ApiVersions of version 99
        assert (await refused.receive(ApiVersionsResponse, 0)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert await versions(refused) == ErrorCode.NONE
        refused.send(ApiVersionsRequest(), 0)
        assert await refused.is_closed()

    play(tmp_path, scenario)


def test_nothing_before_the_login_is_kept_under_the_client_id(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        requests, turns = inside.broker.quotas.requests, inside.server._addresses.turns
        sensors = len(requests._sensors), len(requests._resolved)
        named, flows = set(turns.spent), turns.flow_count
        for number in range(20):
            client = await inside.connect()
            client.client_id = f"stranger-{number}"
            await versions(client)
            assert await log_in(client, "wrong") == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await client.is_closed()
        assert (len(requests._sensors), len(requests._resolved)) == sensors
        assert requests.before_login.used_total > 0
        assert {name for name in set(turns.spent) - named if "stranger" in name[1]} == set()
        assert turns.flow_count <= flows + 1, "that of the newcomers of the address"

    play(tmp_path, scenario)


def test_a_login_is_not_charged_to_the_name_that_it_proves_and_what_follows_is(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        assert await log_in(client) == ErrorCode.NONE
        resolved = inside.broker.quotas.requests.resolved
        assert not any(client_id == "test" for _, client_id in resolved)
        await client.call(MetadataRequest([]), MetadataResponse, 9)
        assert ("alice", "test") in resolved

    play(tmp_path, scenario)


def test_a_long_client_id_is_kept_as_its_beginning_and_a_hash(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        client.client_id = LONG
        assert await log_in(client) == ErrorCode.NONE
        await client.call(MetadataRequest([]), MetadataResponse, 9)
        kept = [client_id for user, client_id in inside.broker.quotas.requests.resolved if user == "alice"]
        assert kept == [shortened(LONG)]
        assert all(len(name) <= NAME_CHARACTERS_MAX for pair in inside.server._addresses.turns.spent for name in pair)

    play(tmp_path, scenario)
