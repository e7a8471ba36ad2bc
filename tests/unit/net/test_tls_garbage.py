"""A TLS connection that has ended leaves nothing for a search for garbage, however it ended: 256 KiB a connection."""

import asyncio
import gc
import socket
import ssl
import struct
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kavka_broker.core.authentication.tls import PROTOCOLS, ClientTlsSettings
from kavka_broker.net.acceptor import SocketAcceptor
from kavka_broker.net.connection import Connection
from kavka_broker.net.outbound import Link, Outbound
from kavka_broker.net.outbound_login import Introduction, client_context
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from tests.support.in_process import InProcess, running
from tests.support.secured import Certificates, certificates
from tests.support.waiting import turns, until

SECONDS_MAX = 60.0
CONNECTIONS = 3
FRAME = bytes.fromhex("0000000a0012000000000007ffff")
BEGINNING_OF_A_HELLO = bytes.fromhex("1603010200010001fc0303")
RESET = struct.pack("ii", 1, 0)

Guest = Callable[[int, ssl.SSLContext], None]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("own") / "keys", "DNS:localhost,IP:127.0.0.1")


def settings(keys: Certificates) -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:0,MUTUAL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,MUTUAL:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.directory / "ca.crt"),
        "listener.name.mutual.ssl.client.auth": "required",
    }


def port_of(inside: InProcess, listener: str) -> int:
    return next(address.port for address in inside.server.advertised if address.name == listener)


def leftovers() -> list[str]:
    kinds = (SSLProtocol, Connection, Link)
    return [type(one).__name__ for one in gc.get_objects() if isinstance(one, kinds)]


@contextmanager
def without_searches() -> Iterator[None]:
    gc.collect()
    gc.disable()
    collect, gc.collect = gc.collect, lambda generation=2: 0  # the acceptor's own search is none that proves anything
    try:
        yield
    finally:
        gc.collect = collect
        gc.enable()


def finished(port: int, context: ssl.SSLContext) -> None:
    with (
        socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        wrapped.sendall(FRAME)
        assert wrapped.recv(4)


def reset(port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain:
        wrapped = context.wrap_socket(plain, server_hostname="localhost")
        wrapped.sendall(FRAME)
        assert wrapped.recv(4)
        wrapped.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        wrapped.close()


def refused(port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain:
        plain.sendall(FRAME)
        while plain.recv(1000):
            pass


def stalled(port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain:
        plain.sendall(BEGINNING_OF_A_HELLO)


def broken(port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain:
        wrapped = context.wrap_socket(plain.dup(), server_hostname="localhost")
        with wrapped:
            plain.sendall(b"\x17\x03\x03\x00\x20" + 32 * b"x")  # a record that is sealed by no key
            with pytest.raises(ssl.SSLError):
                wrapped.recv(4)


def certless(port: int, context: ssl.SSLContext) -> None:
    with pytest.raises(ssl.SSLError):
        finished(port, context)


CASES: list[tuple[str, Guest]] = [
    ("TLS", finished),
    ("TLS", reset),
    ("TLS", refused),
    ("TLS", stalled),
    ("TLS", broken),
    ("MUTUAL", certless),
]


def play(keys: Certificates, directory: Path, scenario: Callable[[InProcess], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory, settings(keys)) as inside:
            await scenario(inside)

    asyncio.run(run())


def is_quiet(inside: InProcess) -> bool:
    """Whether no connection is there, nor about to be."""
    listeners = list(inside.server.addresses)
    acceptors = [listener.acceptor for listener in listeners]
    return not any(listener.connections for listener in listeners) and not any(
        acceptor.making for acceptor in acceptors if isinstance(acceptor, SocketAcceptor)
    )


def acceptor_of(inside: InProcess, name: str) -> SocketAcceptor:
    (found,) = (listener.acceptor for listener in inside.server.addresses if listener.name == name)
    assert isinstance(found, SocketAcceptor)
    return found


async def come_and_go(inside: InProcess, name: str, guest: Guest, context: ssl.SSLContext, count: int) -> None:
    acceptor = acceptor_of(inside, name)
    taken_count = acceptor.taken_count + count
    for _ in range(count):
        await asyncio.to_thread(guest, port_of(inside, name), context)
    await until(lambda: acceptor.taken_count == taken_count)
    await until(lambda: is_quiet(inside))
    await turns()


@pytest.mark.parametrize(("listener", "guest"), CASES)
def test_a_tls_connection_is_freed_as_it_ends(keys: Certificates, tmp_path: Path, listener: str, guest: Guest) -> None:
    async def scenario(inside: InProcess) -> None:
        context = ssl.create_default_context(cafile=str(keys.directory / "ca.crt"))
        await come_and_go(inside, listener, guest, context, 1)
        with without_searches():
            before = leftovers()
            await come_and_go(inside, listener, guest, context, CONNECTIONS)
            await until(lambda: leftovers() == before)

    play(keys, tmp_path, scenario)


def test_a_handshake_that_is_given_up_leaves_nothing(keys: Certificates, tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        acceptor = acceptor_of(inside, "TLS")
        with without_searches():
            before = leftovers()
            with socket.create_connection(("127.0.0.1", port_of(inside, "TLS")), SECONDS_MAX) as plain:
                plain.sendall(BEGINNING_OF_A_HELLO)
                await until(lambda: acceptor.making)
                acceptor.give_up_oldest()
                await until(lambda: not acceptor.making)
                await until(lambda: leftovers() == before)

    play(keys, tmp_path, scenario)


def test_each_handshake_that_is_too_many_gives_up_another_one(keys: Certificates, tmp_path: Path) -> None:
    """Those that were taken together gave up the same one, and 6,000 waited where 1,000 may."""

    async def scenario(inside: InProcess) -> None:
        acceptor, where = acceptor_of(inside, "TLS"), ("127.0.0.1", port_of(inside, "TLS"))
        with ExitStack() as stack:
            for count in range(1, 4):
                stack.enter_context(socket.create_connection(where, SECONDS_MAX))
                await until(lambda count=count: len(acceptor.making) == count)  # type: ignore[misc]
            acceptor.give_up_oldest()
            acceptor.give_up_oldest()
            assert len(acceptor.making) == 1
        await until(lambda: not acceptor.making)

    play(keys, tmp_path, scenario)


def test_a_link_to_another_node_is_freed_as_it_ends(keys: Certificates, tmp_path: Path) -> None:
    truststore = str(keys.directory / "ca.crt")
    introduction = Introduction(client_context(ClientTlsSettings(truststore, None, None, None, PROTOCOLS, True)))

    async def scenario(inside: InProcess) -> None:
        async def ask(listener: str) -> bool:
            remote = Outbound(introduction).to("127.0.0.1", port_of(inside, listener), client_id="n")
            request = ApiVersionsRequest("a", "1")
            try:
                await remote.ask(request, ApiVersionsResponse, timeout_ms=SECONDS_MAX * 1000)
            except Unreachable:
                return False
            finally:
                remote.close()
            return True

        await ask("TLS")
        await until(lambda: is_quiet(inside))
        with without_searches():
            before = leftovers()
            for _ in range(CONNECTIONS):
                assert await ask("TLS")
                assert not await ask("MUTUAL"), "it shows no certificate"
                assert not await ask("PLAINTEXT"), "nobody speaks TLS there"
            await until(lambda: is_quiet(inside))
            await turns()
            assert leftovers() == before

    play(keys, tmp_path, scenario)
