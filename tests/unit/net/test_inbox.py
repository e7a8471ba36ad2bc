"""Frames come out of the inbox whole, however the bytes arrive."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.net.inbox import INITIAL_BYTES, RETAINED_BYTES_MAX, Inbox
from kavka_broker.protocol.errors import ProtocolViolation


def framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def feed(inbox: Inbox, data: bytes) -> list[bytes]:
    """Receive `data` as the loop does, taking frames whenever there are any."""
    frames = []
    while data:
        room = inbox.room()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        inbox.received(count)
        data = data[count:]
        while (frame := inbox.next_frame()) is not None:
            frames.append(bytes(frame))
    return frames


@given(st.lists(st.binary(min_size=8, max_size=300), max_size=20), st.lists(st.integers(1, 700), min_size=1))
def test_any_split_of_the_bytes_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    inbox = Inbox(1000)
    data = b"".join(map(framed, bodies))
    frames = []
    turn = 0
    while data:
        cut = cuts[turn % len(cuts)]
        turn += 1
        frames += feed(inbox, data[:cut])
        data = data[cut:]
    assert frames == bodies
    assert inbox.waiting_bytes == 0


@pytest.mark.parametrize("size", [INITIAL_BYTES - 4, INITIAL_BYTES, INITIAL_BYTES * 3 + 1, RETAINED_BYTES_MAX + 5])
def test_a_frame_larger_than_the_buffer_arrives_whole(size: int) -> None:
    inbox = Inbox(RETAINED_BYTES_MAX * 2)
    bodies = [b"a" * 20, b"b" * size, b"c" * 9]
    assert feed(inbox, b"".join(map(framed, bodies))) == bodies


@pytest.mark.parametrize(
    ("size", "reason"),
    [(-1, "frame of -1 bytes"), (7, "frame of 7 bytes"), (1001, "8 to 1000 are allowed"), (2**31 - 1, "2147483647")],
)
def test_an_absurd_size_is_refused_before_anything_is_allocated(size: int, reason: str) -> None:
    inbox = Inbox(1000)
    with pytest.raises(ProtocolViolation, match=reason):
        feed(inbox, pack(">i", size))
    assert len(inbox.room()) <= INITIAL_BYTES


def test_a_claimed_size_takes_no_memory_until_bytes_arrive() -> None:
    inbox = Inbox(100 * 1024 * 1024)
    feed(inbox, pack(">i", 100 * 1024 * 1024) + bytes(1000))
    assert len(inbox.room()) <= INITIAL_BYTES
    feed(inbox, bytes(INITIAL_BYTES))
    assert len(inbox.room()) <= INITIAL_BYTES * 8


@pytest.mark.parametrize(
    ("start", "reason"),
    [(b"\x16\x03\x01\x02\x00\x01\x00", "TLS"), (b"GET / HTTP/1.1\r\n", "HTTP")],
)
def test_another_protocol_is_named(start: bytes, reason: str) -> None:
    with pytest.raises(ProtocolViolation, match=reason):
        feed(Inbox(100 * 1024 * 1024), start)


def test_memory_of_a_large_frame_is_given_back() -> None:
    inbox = Inbox(RETAINED_BYTES_MAX * 4)
    feed(inbox, framed(b"x" * (RETAINED_BYTES_MAX + 1)))
    assert inbox.next_frame() is None
    assert len(inbox.room()) == INITIAL_BYTES
    feed(inbox, framed(b"x" * INITIAL_BYTES))
    inbox.shrink()
    assert len(inbox.room()) == INITIAL_BYTES
