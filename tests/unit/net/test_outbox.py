"""Answers that are gathered leave together, in order, and none is lost."""

import asyncio
import socket
import ssl
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

from kavka_broker.net import outbox as module
from kavka_broker.net.outbox import CHUNK_BYTES_MAX, GATHERED_BYTES_MAX, PIECES_MAX, SMALL_BYTES_MAX, Outbox
from kavka_broker.net.tls_protocol import TlsProtocol
from kavka_broker.net.transports import stream_of
from tests.support.secured import certificates

Scenario = Callable[[Outbox, socket.socket], Awaitable[None]]


def play(scenario: Scenario) -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
            try:
                await scenario(Outbox(transport), theirs)
            finally:
                transport.abort()

    asyncio.run(run())


def arrived(theirs: socket.socket) -> bytes:
    try:
        return theirs.recv(1 << 20)
    except BlockingIOError:
        return b""


class Encrypting(asyncio.Transport):
    """A transport that has no plain socket, and what it was given."""

    def __init__(self) -> None:
        super().__init__({"sslcontext": object()})
        self.written: list[bytes] = []
        self.is_full = self.fills = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del high, low

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return int(self.is_full)

    def write(self, data: object) -> None:
        self.written.append(bytes(data))  # type: ignore[call-overload]
        self.is_full = self.fills


def test_over_tls_small_pieces_leave_in_one_record_and_large_ones_in_chunks() -> None:
    transport = Encrypting()
    outbox = Outbox(transport)
    outbox.send([b"size", b"header", b"body"])
    assert transport.written == [b"sizeheaderbody"]
    transport.written.clear()
    large = bytes(range(256)) * 1024
    outbox.send([b"head", large, b"tail"])
    assert b"".join(transport.written) == b"head" + large + b"tail"
    assert [len(part) for part in transport.written] == [CHUNK_BYTES_MAX, CHUNK_BYTES_MAX, 8]
    assert (outbox.waiting_bytes, outbox.sent_bytes) == (0, 14 + 8 + len(large))


def test_over_tls_the_rest_waits_for_the_transport() -> None:
    transport = Encrypting()
    outbox = Outbox(transport)
    transport.fills = True
    outbox.send([b"a" * CHUNK_BYTES_MAX, b"b", b"c"])
    assert [len(part) for part in transport.written] == [CHUNK_BYTES_MAX]
    assert outbox.waiting_bytes == 2
    transport.fills = transport.is_full = False
    outbox.resume()
    assert transport.written[1:] == [b"bc"]


def test_over_tls_a_transport_that_is_full_is_given_nothing_more() -> None:
    transport = Encrypting()
    outbox = Outbox(transport)
    transport.fills = True
    for _ in range(100):
        outbox.send([b"a" * 1024])
    assert transport.written == [b"a" * 1024]
    assert outbox.waiting_bytes == 99 * 1024
    transport.fills = transport.is_full = False
    outbox.resume()
    assert b"".join(transport.written) == b"a" * 100 * 1024


def test_small_answers_to_a_client_that_does_not_read_wait_here_and_are_counted() -> None:
    """Each was below a chunk, and went to the transport, which held them all: uncounted, and without a bound."""

    async def scenario(outbox: Outbox, theirs: socket.socket) -> None:
        size = 1024
        while not outbox.waiting_bytes:
            outbox.send([b"a" * size])
        in_transport = outbox._transport.get_write_buffer_size()
        for _ in range(1_000):
            outbox.send([b"a" * size])
        assert outbox._transport.get_write_buffer_size() == in_transport <= CHUNK_BYTES_MAX
        assert outbox.waiting_bytes >= 1_000 * size

    play(scenario)


class Counting(asyncio.Protocol):
    """Counts how often it is told to pause and to resume."""

    told = 0
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = stream_of(transport)

    def pause_writing(self) -> None:
        self.told += 1

    def resume_writing(self) -> None:
        self.told += 1


def test_over_tls_nothing_is_resumed_that_was_not_held_back(tmp_path: Path) -> None:
    """Every second write called the connection within itself; in a large answer the calls nested."""
    keys = certificates(tmp_path / "keys").directory
    served, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=keys / "ca.crt")
    served.load_cert_chain(keys / "broker.pem")

    async def run() -> None:
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        client = asyncio.open_connection(sock=theirs, ssl=trusting, server_hostname="localhost")
        counting = Counting()
        protocol = TlsProtocol(counting, served)
        (plain, _), (reader, writer) = await asyncio.gather(
            loop.connect_accepted_socket(lambda: protocol, ours), client
        )
        await protocol.make(plain)
        transport = counting.transport
        try:
            outbox = Outbox(transport)
            for _ in range(10):
                outbox.send([b"a", b"b"])
            assert await reader.readexactly(20) == b"ab" * 10
            assert counting.told == 0
            outbox.send([bytes(64 * 1024 * 1024)])
            assert (counting.told, outbox.waiting_bytes > 0) == (1, True), "it is full, and says so once"
        finally:
            transport.abort()
            writer.transport.abort()

    asyncio.run(run())


def test_what_is_sent_leaves_at_once() -> None:
    async def scenario(outbox: Outbox, theirs: socket.socket) -> None:
        outbox.send([b"a", b"b"])
        assert arrived(theirs) == b"ab"

    play(scenario)


def test_gathered_answers_wait_for_the_flush_and_keep_their_order() -> None:
    async def scenario(outbox: Outbox, theirs: socket.socket) -> None:
        outbox.gather()
        outbox.send([b"a"])
        outbox.send([b"b", b"c"])
        assert arrived(theirs) == b""
        outbox.flush()
        assert arrived(theirs) == b"abc"
        outbox.send([b"d"])
        assert arrived(theirs) == b"d"

    play(scenario)


def test_a_large_answer_takes_the_small_ones_before_it_along_and_gathering_goes_on() -> None:
    async def scenario(outbox: Outbox, theirs: socket.socket) -> None:
        large = bytes(GATHERED_BYTES_MAX + 1)
        outbox.gather()
        outbox.send([b"a"])
        outbox.send([large])
        assert arrived(theirs) == b"a" + large
        outbox.send([b"b"])
        assert arrived(theirs) == b""
        outbox.flush()
        assert arrived(theirs) == b"b"

    play(scenario)


def test_more_pieces_than_one_call_takes_are_all_sent() -> None:
    async def scenario(outbox: Outbox, theirs: socket.socket) -> None:
        outbox.gather()
        for _ in range(PIECES_MAX + 10):
            outbox.send([b"x"])
        outbox.flush()
        while outbox.waiting_bytes:
            await asyncio.sleep(0)
            outbox.resume()
        assert arrived(theirs) == b"x" * (PIECES_MAX + 10)

    play(scenario)


def test_nothing_gathered_is_nothing_sent() -> None:
    async def scenario(outbox: Outbox, theirs: socket.socket) -> None:
        outbox.gather()
        outbox.flush()
        assert arrived(theirs) == b""
        assert outbox.sent_bytes == 0

    play(scenario)


def test_a_gathering_fits_one_call_of_the_kernel() -> None:
    assert module.PIECES_MAX < 1024


def test_small_answers_that_wait_take_little_more_memory_than_their_bytes() -> None:
    transport = Encrypting()
    transport.is_full = True
    outbox = Outbox(transport)
    answers = [b"%010d" % number for number in range(100_000)]
    tracemalloc.start()
    try:
        for answer in answers:
            outbox.send([answer])
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert outbox.waiting_bytes == 1_000_000
    assert kept_bytes < 1_500_000
    transport.is_full = False
    outbox.resume()
    assert b"".join(transport.written) == b"".join(answers)


def test_small_and_large_answers_that_wait_leave_in_their_order() -> None:
    transport = Encrypting()
    transport.is_full = True
    outbox = Outbox(transport)
    answers = [
        bytes([number]) * size for number, size in enumerate((10, SMALL_BYTES_MAX + 1, 0, 7, SMALL_BYTES_MAX, 3))
    ]
    for answer in answers:
        outbox.send([answer])
    transport.is_full = False
    outbox.resume()
    assert b"".join(transport.written) == b"".join(answers)
    assert outbox.waiting_bytes == 0
