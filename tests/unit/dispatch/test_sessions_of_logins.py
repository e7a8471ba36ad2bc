"""Logins that do not hold for good, on a node that runs: the end, the renewal, and what is answered in between."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.net.connection import Connection
from kavka_broker.net.listener import Listener
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.support.in_process import Client, InProcess, batch, running

LIFETIME_MS = 3_600_000
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_alice="a" user_bob="b";',
    "listener.name.clients.plain.connections.max.reauth.ms": str(LIFETIME_MS),
    "sasl.server.max.receive.size": "10000",
    "connection.failed.authentication.delay.ms": "0",
}
Scenario = Callable[[InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario, **changed: str) -> None:
    async def run() -> None:
        async with running(directory, {**SETTINGS, **changed}) as inside:
            await scenario(inside)

    asyncio.run(run())


async def handshake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> ErrorCode:
    answer = await client.call(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, version)
    return ErrorCode(answer.error_code)


async def log_in(client: Client, token: bytes = b"\0alice\0a", version: int = 2) -> SaslAuthenticateResponse:
    assert await handshake(client) == ErrorCode.NONE
    return await client.call(SaslAuthenticateRequest(token), SaslAuthenticateResponse, version)


async def is_served(client: Client) -> bool:
    """Whether a request is answered; otherwise the connection has been closed."""
    try:
        await client.call(MetadataRequest([]), MetadataResponse, 9)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return False
    return True


def listener(inside: InProcess) -> Listener:
    return inside.server.addresses.of_brokers[0]


def connection(inside: InProcess) -> Connection:
    """The one connection to the listener that asks who its clients are."""
    (found,) = listener(inside).connections
    return found


def end_session(inside: InProcess) -> None:
    session = connection(inside).peer.session
    assert session is not None
    session.ends_ms = -1.0


def counts(inside: InProcess) -> Authentications:
    return listener(inside).authentications


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_answer_says_how_long_a_login_holds_where_it_has_room_for_it(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        answer = await log_in(client, version=version)
        assert answer.session_lifetime_ms == (LIFETIME_MS if version else 0)
        assert await is_served(client)
        assert counts(inside) == Authentications(successful=1, successful_untold=not version)

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [0, 1])
def test_behind_the_end_the_next_request_closes_the_connection_and_not_before(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        await log_in(client, version=version)
        end_session(inside)
        first, other = connection(inside), await inside.connect()
        await log_in(other)
        assert await is_served(other)
        assert first in listener(inside).connections
        assert not await is_served(client)
        assert counts(inside).sessions_ended == 1

    play(tmp_path, scenario)


def test_also_a_question_for_versions_closes_it(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        await log_in(client)
        end_session(inside)
        client.send(ApiVersionsRequest("x", "1"), 3)
        assert await client.is_closed()

    play(tmp_path, scenario)


def test_a_handshake_renews_a_login_behind_its_end_on_the_same_connection(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        await log_in(client)
        end_session(inside)
        answer = await log_in(client)
        assert (answer.error_code, answer.session_lifetime_ms) == (0, LIFETIME_MS)
        assert await is_served(client)
        assert counts(inside) == Authentications(successful=1, renewed=1)

    play(tmp_path, scenario)


def test_a_second_renewal_within_a_second_is_refused_and_the_login_stands(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        await log_in(client)
        await log_in(client)
        session = connection(inside).peer.session
        assert session is not None
        session.renewed_ms = inside.broker.clock.monotonic_ms() + 60_000
        assert await handshake(client) == ErrorCode.ILLEGAL_SASL_STATE
        assert await is_served(client)

    play(tmp_path, scenario)


@pytest.mark.parametrize("token", [b"\0bob\0b", b"\0alice\0wrong"])
def test_a_renewal_by_another_user_or_password_ends_the_connection(tmp_path: Path, token: bytes) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        await log_in(client)
        answer = await log_in(client, token)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await client.is_closed()
        assert counts(inside) == Authentications(successful=1, not_renewed=1)

    play(tmp_path, scenario)


def test_nothing_else_is_answered_within_a_renewal(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        await log_in(client)
        assert await handshake(client) == ErrorCode.NONE
        answer = await client.call(ApiVersionsRequest("x", "1"), ApiVersionsResponse, 0)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await client.is_closed()

    play(tmp_path, scenario)


def test_frames_are_short_within_a_renewal_and_long_again_behind_it(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t")
        client = await inside.connect()
        await log_in(client)
        long = long_produce()
        assert await handshake(client) == ErrorCode.NONE
        answer = await client.call(SaslAuthenticateRequest(b"\0alice\0a"), SaslAuthenticateResponse, 1)
        assert answer.error_code == ErrorCode.NONE
        written = await client.call(long, ProduceResponse, 9)
        assert written.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        end_renewal_bound(inside)
        assert await handshake(client) == ErrorCode.NONE
        client.send(SaslAuthenticateRequest(b"x" * 20_000), 1)
        assert await client.is_closed()
        assert counts(inside) == Authentications(successful=1, renewed=1, not_renewed=1)

    play(tmp_path, scenario)


def end_renewal_bound(inside: InProcess) -> None:
    """Let another renewal begin at once."""
    session = connection(inside).peer.session
    assert session is not None
    session.renewed_ms = None


def long_produce() -> ProduceRequest:
    data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, batch(b"x" * 20_000))])]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data)


def test_what_was_asked_before_the_end_is_answered_before_the_connection_closes(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t")
        client = await inside.connect()
        await log_in(client)
        dispatcher = listener(inside).dispatcher
        assert dispatcher is not None
        client.send(long_produce(), 9)
        client.send(MetadataRequest([]), 9)
        client.send(MetadataRequest([]), 9)
        begin = dispatcher.begin

        def ending(*arguments: object) -> object:
            exchange = begin(*arguments)  # type: ignore[arg-type]
            if exchange.api.name == "Produce":
                end_session(inside)
            return exchange

        dispatcher.begin = ending  # type: ignore[method-assign, assignment]
        assert (await client.receive(ProduceResponse, 9)).responses[0].partition_responses[0].error_code == 0
        assert await client.is_closed()
        assert counts(inside).sessions_ended == 1
        assert not listener(inside).connections

    play(tmp_path, scenario)


def test_bare_tokens_log_in_to_sessions_that_end_too(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        for _ in range(2):  # the second renews the first
            assert await handshake(client, version=0) == ErrorCode.NONE
            client.writer.write((8).to_bytes(4, "big") + b"\0alice\0a")
            assert await client.reader.readexactly(4) == bytes(4)
        assert counts(inside) == Authentications(successful=1, successful_untold=1, renewed=1)
        end_session(inside)
        assert not await is_served(client)

    play(tmp_path, scenario)


def test_another_mechanism_in_a_renewal_closes_the_connection_behind_its_handshake(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        await log_in(client)
        assert await handshake(client, "SCRAM-SHA-256") == ErrorCode.NONE
        client.send(SaslAuthenticateRequest(b"\0alice\0a"), 1)
        assert await client.is_closed()
        assert counts(inside) == Authentications(successful=1, not_renewed=1)

    play(tmp_path, scenario, **{"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"})


def test_a_login_that_holds_for_good_is_not_renewed(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        assert (await log_in(client)).session_lifetime_ms == 0
        assert connection(inside).peer.session is None
        assert await handshake(client) == ErrorCode.ILLEGAL_SASL_STATE
        assert await is_served(client)

    play(tmp_path, scenario, **{"listener.name.clients.plain.connections.max.reauth.ms": "0"})
