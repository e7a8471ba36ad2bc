"""Answers that are gathered leave together, in order, and none is lost."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from kavka_broker.net import outbox as module
from kavka_broker.net.outbox import GATHERED_BYTES_MAX, PIECES_MAX, Outbox

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
