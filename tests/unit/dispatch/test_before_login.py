"""What a client may do before its login, on a node that runs: little, and nothing of it is kept under its names."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from kavka_broker.core.audit.events import LoggedIn, Window
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX, shortened
from kavka_broker.net.connection import Connection
from kavka_broker.net.listener import Listener
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kavka_broker.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.support.in_process import Client, InProcess, running
from tests.support.waiting import until

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_alice="a";',
    "connection.failed.authentication.delay.ms": "0",
}
LONG = "x" * 32_000 + "\U0001f600"


def play(
    directory: Path, scenario: Callable[[InProcess], Awaitable[None]], settings: Mapping[str, str] | None = None
) -> None:
    async def run() -> None:
        async with running(directory, {**SETTINGS, **(settings or {})}) as inside:
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
        refused.writer.write(b"\0\0\0\x0c\0\x12\0\x63\0\0\0\x07\xff\xff\0\0")  # ApiVersions of version 99
        assert (await refused.receive(ApiVersionsResponse, 0)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert await versions(refused) == ErrorCode.NONE
        refused.send(ApiVersionsRequest(), 0)
        assert await refused.is_closed()

    play(tmp_path, scenario)


def test_a_client_hears_after_its_login_that_it_takes_a_broker_for_another(tmp_path: Path) -> None:
    """As in Apache Kafka, which then compares what the client names (KIP-1242)."""

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        misrouted = ApiVersionsRequest("a", "1", "b3RoZXItY2x1c3Rlci1pZA", 1)
        assert (await client.call(misrouted, ApiVersionsResponse, 5)).error_code == ErrorCode.NONE
        assert await log_in(client) == ErrorCode.NONE
        assert (await client.call(misrouted, ApiVersionsResponse, 5)).error_code == ErrorCode.REBOOTSTRAP_REQUIRED

    play(tmp_path, scenario)


def test_nothing_before_the_login_is_kept_under_the_client_id(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        requests, turns = inside.broker.quotas.requests, inside.server.addresses.turns
        sensors = len(requests.sensors), len(requests.resolved)
        named, flows = set(turns.spent), turns.flow_count
        for number in range(20):
            client = await inside.connect()
            client.client_id = f"stranger-{number}"
            await versions(client)
            assert await log_in(client, "wrong") == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await client.is_closed()
        assert (len(requests.sensors), len(requests.resolved)) == sensors
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
        assert all(len(name) <= NAME_CHARACTERS_MAX for pair in inside.server.addresses.turns.spent for name in pair)

    play(tmp_path, scenario)


def listener_of(inside: InProcess) -> Listener:
    return next(one for one in inside.server.addresses.of_brokers if one.name == "CLIENTS")


async def nothing(client: Client) -> None:
    """Connect, and say nothing."""


async def ask_for_versions(client: Client) -> None:
    await versions(client)


async def name_a_mechanism(client: Client) -> None:
    await client.call(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)


async def send_half_a_request(client: Client) -> None:
    await versions(client)
    client.writer.write(b"\0\0\1\0half")


async def send_the_first_of_two_tokens(client: Client) -> None:
    await client.call(SaslHandshakeRequest("SCRAM-SHA-256"), SaslHandshakeResponse, 1)
    answer = await client.call(SaslAuthenticateRequest(b"n,,n=bob,r=abcdef"), SaslAuthenticateResponse, 2)
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    "begin", [nothing, ask_for_versions, name_a_mechanism, send_half_a_request, send_the_first_of_two_tokens]
)
def test_a_login_that_is_not_finished_ends_at_its_deadline(
    tmp_path: Path, begin: Callable[[Client], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    """However far it has come. The deadline ends here by hand, when the client has done that."""

    async def scenario(inside: InProcess) -> None:
        admin = await inside.connect()
        await log_in(admin)
        password = ScramCredentialUpsertion("bob", 1, 4096, b"salt" * 4, b"x" * 32)
        await admin.call(AlterUserScramCredentialsRequest([], [password]), AlterUserScramCredentialsResponse, 0)
        await until(lambda: inside.broker.metadata.credentials.of("bob", 1) is not None)
        inside.broker.audit = Window(0)

        listener, client = listener_of(inside), await inside.connect()
        await begin(client)
        await until(lambda: len(listener.connections) == 2)
        end_deadline(list(listener.connections)[-1])
        assert await client.is_closed()
        await until(lambda: len(listener.connections) == 1)

        assert listener.authentications.failed == 1
        assert listener.refused_count == 1
        assert [tally.happening for tally in inside.broker.audit.take(1)] == [LoggedIn(None, "127.0.0.1", "CLIENTS")]
        inside.broker.audit = None
        assert await versions(admin) == ErrorCode.NONE

    with caplog.at_level(logging.WARNING, "kavka.net"):
        play(tmp_path, scenario)
    told = [record for record in caplog.records if record.getMessage() == "connection.closed"]
    assert "kavka.login.timeout.ms" in str(told[0].__dict__)


def has_deadline(connection: Connection) -> bool:
    return connection.login_deadline is not None


def end_deadline(connection: Connection) -> None:
    assert connection.login_deadline is not None
    connection.login_deadline.fire()


def test_a_login_has_so_long_as_configured(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        assert await (await inside.connect()).is_closed()
        assert listener_of(inside).authentications.failed == 1

    play(tmp_path, scenario, {"kavka.login.timeout.ms": "20"})


def test_a_client_that_has_logged_in_has_no_deadline_nor_one_that_need_not(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client, listener = await inside.connect(), listener_of(inside)
        await until(lambda: len(listener.connections) == 1)
        (connection,) = listener.connections
        assert has_deadline(connection)
        await log_in(client)
        assert not has_deadline(connection)
        for other in inside.server.addresses.of_brokers:
            assert other is listener or not any(map(has_deadline, other.connections))

    play(tmp_path, scenario)


def test_a_failed_login_is_answered_after_its_delay_though_the_deadline_ends(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client, listener = await inside.connect(), listener_of(inside)
        answer = asyncio.ensure_future(log_in(client, "wrong"))
        await until(lambda: listener.authentications.failed == 1)
        end_deadline(next(iter(listener.connections)))
        assert await answer == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert listener.authentications.failed == 1

    play(tmp_path, scenario, {"connection.failed.authentication.delay.ms": "100"})


def test_a_connection_that_leaves_takes_its_deadline_with_it(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client, listener = await inside.connect(), listener_of(inside)
        await until(lambda: len(listener.connections) == 1)
        (connection,) = listener.connections
        deadline = connection.login_deadline
        assert deadline is not None
        client.close()
        await until(lambda: not listener.connections)
        assert not has_deadline(connection)
        assert not deadline.is_waiting

    play(tmp_path, scenario)
