"""A peer that TLS refuses hears why, by the alert that Kafka's clients take for final; asyncio alone sends none."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka_broker.core.authentication.tls import PROTOCOLS, ClientTlsSettings
from kavka_broker.net.outbound import Outbound
from kavka_broker.net.outbound_login import Introduction, client_context
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.support.in_process import InProcess, running
from tests.support.secured import Certificates, certificates
from tests.support.waiting import turns

SECONDS_MAX = 60.0
FRAME = bytes.fromhex("0000000a0012000000000007ffff")
LISTENERS = ("TLS", "MUTUAL", "SASL", "CONTROLLER")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("own") / "keys", "DNS:localhost,IP:127.0.0.1")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("foreign") / "keys", "DNS:localhost,IP:127.0.0.1")


def settings(keys: Certificates) -> dict[str, str]:
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in ("PLAINTEXT", *LISTENERS)),
        "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT,TLS:SSL,MUTUAL:SSL,SASL:SASL_SSL,CONTROLLER:SSL"),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.directory / "ca.crt"),
        "listener.name.mutual.ssl.client.auth": "required",
    }


def port_of(inside: InProcess, listener: str) -> int:
    found = (*inside.server.advertised, *inside.server.controllers)
    return next(address.port for address in found if address.name == listener)


def client(keys: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(keys.directory / "ca.crt"))


def refusal(context: ssl.SSLContext, port: int) -> str:
    """The alert that a client hears which connects with this context, and asks once."""
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
                wrapped.sendall(FRAME)
                return f"served: {len(wrapped.recv(4))} bytes"
        except ssl.SSLError as error:
            return error.reason


def of_version(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def with_foreign_ciphers(context: ssl.SSLContext) -> ssl.SSLContext:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("aNULL:@SECLEVEL=0")
    return context


def with_key(context: ssl.SSLContext, keys: Certificates) -> ssl.SSLContext:
    context.load_cert_chain(keys.directory / "client.crt", keys.directory / "client.key")
    return context


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1.* is deprecated")
def test_a_client_that_tls_refuses_hears_why_at_every_listener(
    keys: Certificates, foreign: Certificates, tmp_path: Path
) -> None:
    first, second, third = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    everywhere: dict[str, Callable[[], ssl.SSLContext]] = {
        "TLSV1_ALERT_PROTOCOL_VERSION": lambda: of_version(client(keys), first),
        "SSLV3_ALERT_HANDSHAKE_FAILURE": lambda: with_foreign_ciphers(client(keys)),
    }
    mutual: list[tuple[str, ssl.SSLContext]] = [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", of_version(client(keys), third)),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", of_version(client(keys), second)),
        ("TLSV1_ALERT_UNKNOWN_CA", of_version(with_key(client(keys), foreign), second)),
        ("TLSV1_ALERT_UNKNOWN_CA", of_version(with_key(client(keys), foreign), third)),
        ("served: 4 bytes", with_key(client(keys), keys)),
    ]

    async def scenario() -> None:
        async with running(tmp_path / "data", settings(keys)) as inside:
            for listener in LISTENERS:
                for reason, context in everywhere.items():
                    heard = await asyncio.to_thread(refusal, context(), port_of(inside, listener))
                    assert (listener, heard) == (listener, reason)
            for reason, shown in mutual:
                assert await asyncio.to_thread(refusal, shown, port_of(inside, "MUTUAL")) == reason

    asyncio.run(scenario())


def test_a_client_that_breaks_tls_after_the_handshake_hears_so(keys: Certificates, tmp_path: Path) -> None:
    def break_in(port: int) -> str:
        with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain:
            wrapped = client(keys).wrap_socket(plain.dup(), server_hostname="localhost")
            with wrapped:
                plain.sendall(b"\x17\x03\x03\x00\x20" + 32 * b"x")  # a record that is sealed by no key
                try:
                    return str(wrapped.recv(4))
                except ssl.SSLError as error:
                    return error.reason

    async def scenario() -> None:
        async with running(tmp_path / "data", settings(keys)) as inside:
            assert await asyncio.to_thread(break_in, port_of(inside, "TLS")) == "SSLV3_ALERT_BAD_RECORD_MAC"

    asyncio.run(scenario())


def test_a_node_whose_certificate_is_not_believed_hears_so_from_the_node_that_connects(
    keys: Certificates, foreign: Certificates
) -> None:
    truststore = str(keys.directory / "ca.crt")
    introduction = Introduction(client_context(ClientTlsSettings(truststore, None, None, None, PROTOCOLS, True)))
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(foreign.directory / "broker.pem")

    def serve(listening: socket.socket) -> str:
        accepted, _ = listening.accept()
        accepted.settimeout(SECONDS_MAX)
        with accepted, pytest.raises(ssl.SSLError) as raised:
            shown.wrap_socket(accepted, server_side=True).recv(1)
        return str(raised.value.reason)

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = asyncio.create_task(asyncio.to_thread(serve, listening))
            remote = Outbound(introduction).to("127.0.0.1", listening.getsockname()[1], client_id="n")
            with pytest.raises(Unreachable, match="certificate verify failed"):
                await remote.ask(MetadataRequest(), MetadataResponse, timeout_ms=SECONDS_MAX * 1000)
            assert await serving == "TLSV1_ALERT_UNKNOWN_CA"
            remote.close()
            await turns()

    asyncio.run(scenario())
