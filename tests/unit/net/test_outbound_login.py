"""How a node makes itself known, and whom it believes: against peers that are none, or others than they say."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kavka_broker.core.authentication.inter_node import LoginSettings
from kavka_broker.core.authentication.tls import PROTOCOLS, ClientTlsSettings
from kavka_broker.core.config.definition import Secret
from kavka_broker.net.outbound import Outbound, Remote
from kavka_broker.net.outbound_login import Introduction, client_context
from kavka_broker.net.tls import TlsError
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import encode_response_parts, read_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.support.secured import Certificates, certificates
from tests.support.waiting import for_ever, turns, until

TIME_MS = 60_000.0
HOUR_MS = 3_600_000
SECRET = "s3cr3t"
ADDRESSES = "DNS:localhost,IP:127.0.0.1"
GREETING = ApiVersionsResponse(
    api_keys=[ApiVersion(key, 0, high) for key, high in ((18, 3), (3, 12), (17, 1), (36, 2))]
)
KINDS: dict[int, Message] = {
    18: GREETING,
    17: SaslHandshakeResponse(mechanisms=["PLAIN"]),
    36: SaslAuthenticateResponse(),
    3: MetadataResponse(),
}


@asynccontextmanager
async def peer(
    answers: dict[int, Message | None] | None = None, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[int]]]:
    """A peer that answers by API key, with None not at all; its port, and what it was asked."""
    asked: list[int] = []
    writers: list[asyncio.StreamWriter] = []
    known = {**KINDS, **(answers or {})}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                header, _ = read_request_header(memoryview(frame))
                asked.append(header.api_key)
                if (answer := known[header.api_key]) is None:
                    await for_ever()
                else:
                    writer.write(b"".join(encode_response_parts(answer, header.api_version, header.correlation_id)))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "0.0.0.0", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await turns()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("own") / "keys", ADDRESSES)


def showing(keys: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.directory / "broker.pem")
    return context


def trusting(keys: Certificates, *, checks_names: bool = True) -> Introduction:
    truststore = str(keys.directory / "ca.crt")
    return Introduction(client_context(ClientTlsSettings(truststore, None, None, None, PROTOCOLS, checks_names)))


def known_by(mechanism: str) -> Introduction:
    return Introduction(login=LoginSettings(mechanism, "node", SECRET))


async def ask(outbound: Outbound, port: int, *, host: str = "127.0.0.1", timeout_ms: float = TIME_MS) -> Message:
    remote = outbound.to(host, port, client_id="n")
    try:
        return await remote.ask(MetadataRequest(), MetadataResponse, timeout_ms=timeout_ms)
    finally:
        remote.close()
        await turns()


def test_nothing_is_asked_before_the_login() -> None:
    async def scenario() -> None:
        async with peer() as (port, asked):
            await ask(Outbound(known_by("PLAIN")), port)
            assert asked == [18, 17, 36, 3]

    asyncio.run(scenario())


def end_login(remote: Remote) -> None:
    """What happens when the login over this connection is about to end, which takes an hour, now."""
    assert remote.link is not None
    retirement = remote.link.retirement
    assert retirement is not None
    left_ms = 1000 * (retirement.when() - asyncio.get_running_loop().time())
    assert left_ms < HOUR_MS, "it is too late when the login has ended"
    remote.retire(remote.link)


def test_another_connection_takes_over_before_a_login_ends_and_the_former_one_answers_what_it_owes() -> None:
    async def scenario() -> None:
        greeted = [18, 17, 36]
        async with peer({36: SaslAuthenticateResponse(session_lifetime_ms=HOUR_MS), 3: None}) as (port, asked):
            remote = Outbound(known_by("PLAIN")).to("127.0.0.1", port, client_id="n")
            assert isinstance(remote, Remote)
            first = asyncio.ensure_future(remote.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS))
            await until(lambda: asked == [*greeted, 3])
            end_login(remote)
            second = asyncio.ensure_future(remote.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS))
            await until(lambda: asked == 2 * [*greeted, 3])
            assert not first.done()
            remote.close()
            for waiting in (first, second):
                with pytest.raises(Unreachable, match="is given up"):
                    await waiting
            await turns()

    asyncio.run(scenario())


def test_a_former_connection_is_closed_once_it_owes_nothing() -> None:
    async def scenario() -> None:
        async with peer({36: SaslAuthenticateResponse(session_lifetime_ms=HOUR_MS)}) as (port, asked):
            remote = Outbound(known_by("PLAIN")).to("127.0.0.1", port, client_id="n")
            assert isinstance(remote, Remote)
            for count in (1, 2):
                await remote.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
                assert asked == count * [18, 17, 36, 3]
                end_login(remote)
                assert remote.link is None
                assert [link.is_lost for link in remote.retired] == [True]
            remote.close()
            await turns()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("mechanism", "answers", "words"),
    [
        (
            "PLAIN",
            {17: SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-256"])},
            "SCRAM-SHA-256",
        ),
        ("PLAIN", {36: SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "no such user")}, "no such user"),
        ("PLAIN", {36: SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED)}, "SASL_AUTHENTICATION_FAILED"),
        ("SCRAM-SHA-256", {36: SaslAuthenticateResponse(auth_bytes=b"r=a,s=b,i=1")}, "challenge"),
    ],
)
def test_a_refused_login_is_told_once_and_without_the_password(
    mechanism: str, answers: dict[int, Message | None], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with peer(answers) as (port, asked):
            remote = Outbound(known_by(mechanism)).to("127.0.0.1", port, client_id="n")
            for _ in range(2):
                with pytest.raises(Unreachable, match=words):
                    await remote.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
                remote.close()
            await turns()
            assert 3 not in asked

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == ["link.refused"]
    assert SECRET not in caplog.text + str(vars(caplog.records[0]))


@pytest.mark.parametrize("silent", [17, 36])
def test_a_login_without_an_answer_takes_no_longer_than_its_question(silent: int) -> None:
    async def scenario() -> None:
        async with peer({silent: None}) as (port, _):
            with pytest.raises(Unreachable, match="within 50 ms"):
                await ask(Outbound(known_by("PLAIN")), port, timeout_ms=50)

    asyncio.run(scenario())


def test_a_certificate_of_the_authority_and_of_this_name_is_believed(keys: Certificates) -> None:
    async def scenario() -> None:
        async with peer(context=showing(keys)) as (port, asked):
            for host in ("localhost", "127.0.0.1"):
                await ask(Outbound(trusting(keys)), port, host=host)
            assert asked == [18, 3] * 2

    asyncio.run(scenario())


def test_a_certificate_of_another_authority_is_not_believed(keys: Certificates, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with peer(context=showing(certificates(tmp_path / "others", ADDRESSES))) as (port, asked):
            with pytest.raises(Unreachable, match="certificate verify failed"):
                await ask(Outbound(trusting(keys)), port)
            assert asked == []

    asyncio.run(scenario())


def test_a_certificate_of_another_name_is_believed_only_where_names_do_not_count(keys: Certificates) -> None:
    async def scenario() -> None:
        async with peer(context=showing(keys)) as (port, _):
            with pytest.raises(Unreachable, match="IP address mismatch"):
                await ask(Outbound(trusting(keys)), port, host="127.0.0.2")
            await ask(Outbound(trusting(keys, checks_names=False)), port, host="127.0.0.2")

    asyncio.run(scenario())


def test_a_peer_that_speaks_no_tls_is_refused_in_words(keys: Certificates) -> None:
    async def scenario() -> None:
        async with peer() as (port, asked):
            with pytest.raises(Unreachable):  # the peer waits for the rest of what it takes for a long request
                await ask(Outbound(trusting(keys)), port, timeout_ms=500)
            assert asked == []

    asyncio.run(scenario())


@pytest.mark.parametrize("given", [("none", None), (None, Secret("none"))])
def test_a_truststore_that_is_none_is_refused_by_its_key(given: tuple[str | None, Secret | None]) -> None:
    with pytest.raises(TlsError, match=r"^ssl\.truststore\."):
        client_context(ClientTlsSettings(*given, None, None, PROTOCOLS, True))
