"""Frames come out of the inbox whole, however the bytes arrive."""

from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.net.inbox import KEPT_BYTES_MIN, Inbox
from kavka_broker.net.request_memory import AT_ONCE_BYTES_MAX, RETAINED_BYTES_MAX, SHARED_BYTES, RequestMemory
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.request.registry import FETCH_BYTES_MAX

#: Into so many pieces a large frame is cut at most: a million single bytes show no more.
TURNS_MAX = 500


def framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def feed(inbox: Inbox, data: bytes) -> list[bytes]:
    """Receive `data` as the loop does, taking frames whenever there are any."""
    frames = []
    while data and not inbox.is_starved:
        room = inbox.room()
        assert room, "the loop never receives into nothing"
        count = min(len(room), len(data))
        room[:count] = data[:count]
        inbox.received(count)
        data = data[count:]
        while (frame := inbox.next_frame()) is not None:
            frames.append(bytes(frame))
        inbox.give_back()
    return frames


def inbox_of(frame_bytes_max: int = 100 * 1024 * 1024, memory: RequestMemory | None = None) -> Inbox:
    return Inbox(frame_bytes_max, memory or RequestMemory())


@given(st.lists(st.binary(min_size=8, max_size=300), max_size=20), st.lists(st.integers(1, 700), min_size=1))
def test_any_split_of_the_bytes_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    inbox = inbox_of(1000)
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


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=8, max_size=300)), max_size=30), st.integers(1, 90))
def test_connections_that_share_a_buffer_never_see_each_other(sent: list[tuple[int, bytes]], cut: int) -> None:
    memory = RequestMemory()
    inboxes = [inbox_of(memory=memory) for _ in range(4)]
    taken: list[list[bytes]] = [[] for _ in inboxes]
    waiting = [b"".join(framed(body) for index, body in sent if index == number) for number in range(4)]
    while any(waiting):
        for number, inbox in enumerate(inboxes):
            taken[number] += feed(inbox, waiting[number][:cut])
            waiting[number] = waiting[number][cut:]
    assert taken == [[body for index, body in sent if index == number] for number in range(4)]
    assert memory.used_bytes == 0


@pytest.mark.parametrize("size", [SHARED_BYTES - 4, SHARED_BYTES, SHARED_BYTES * 3 + 1, RETAINED_BYTES_MAX + 5])
def test_a_frame_larger_than_the_buffer_arrives_whole(size: int) -> None:
    memory = RequestMemory()
    inbox = inbox_of(RETAINED_BYTES_MAX * 2, memory)
    bodies = [b"a" * 20, b"b" * size, b"c" * 9]
    assert feed(inbox, b"".join(map(framed, bodies))) == bodies
    assert memory.used_bytes == 0
    assert memory.retained_bytes <= RETAINED_BYTES_MAX


@pytest.mark.parametrize(
    ("size", "reason"),
    [(-1, "frame of -1 bytes"), (7, "frame of 7 bytes"), (1001, "8 to 1000 are allowed"), (2**31 - 1, "2147483647")],
)
def test_an_absurd_size_is_refused_before_anything_is_allocated(size: int, reason: str) -> None:
    memory = RequestMemory()
    with pytest.raises(ProtocolViolation, match=reason):
        feed(inbox_of(1000, memory), pack(">i", size))
    assert memory.used_bytes == 0


def test_a_claimed_size_takes_no_memory_until_bytes_arrive() -> None:
    inbox = inbox_of()
    feed(inbox, pack(">i", 100 * 1024 * 1024) + bytes(1000))
    assert len(inbox.room()) < AT_ONCE_BYTES_MAX
    before = mapped_bytes()
    feed(inbox, bytes(AT_ONCE_BYTES_MAX))
    assert len(inbox.room()) > 90 * 1024 * 1024, "no more of it is copied"
    assert mapped_bytes() - before < 3 * AT_ONCE_BYTES_MAX, "of a map the pages come with the bytes"


def mapped_bytes() -> int:
    """What this process has really taken of such maps."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssShmem:"))


@given(
    st.integers(KEPT_BYTES_MIN - 1000, 4 * KEPT_BYTES_MIN),
    st.lists(st.binary(min_size=8, max_size=300), max_size=5),
    st.integers(1, 900_000),
)
@settings(max_examples=50)
def test_a_frame_that_is_kept_stands_and_what_follows_is_there(size: int, behind: list[bytes], cut: int) -> None:
    memory = RequestMemory()
    inbox, other = inbox_of(memory=memory), inbox_of(memory=memory)
    bodies = [b"first, in between", b"k" * size, *behind, b"l" * size]
    data, kept, frames = memoryview(b"".join(map(framed, bodies))), list[memoryview](), list[bytes]()
    cut = max(cut, len(data) // TURNS_MAX)
    while data:
        room = inbox.room()
        count = min(len(room), len(data), cut)
        room[:count] = data[:count]
        inbox.received(count)
        data = data[count:]
        while (frame := inbox.next_frame()) is not None:
            kept.append(inbox.keep(frame))
            frames.append(bytes(frame))
        inbox.give_back()
        assert feed(other, framed(b"o" * 1000)) == [b"o" * 1000]
    assert frames == bodies
    assert [bytes(one) for one in kept] == bodies, "nobody writes into what is kept"
    assert memory.used_bytes == 0


def test_a_large_frame_is_kept_with_its_buffer_and_a_short_one_copied() -> None:
    inbox = inbox_of()
    data = framed(b"k" * (8 * KEPT_BYTES_MIN)) + framed(b"short, in a large buffer")
    feed_whole(inbox, data)
    large = inbox.next_frame()
    assert large is not None
    assert inbox.keep(large) is large
    short = inbox.next_frame()
    assert short is not None
    kept = inbox.keep(short)
    short[:5] = b"SHORT"
    assert bytes(kept) == b"short, in a large buffer"


def feed_whole(inbox: Inbox, data: bytes) -> None:
    """Receive all of it before any frame is taken."""
    while data:
        room = inbox.room()
        room[: len(data)] = data[: len(room)]
        inbox.received(min(len(room), len(data)))
        data = data[len(room) :]
        if data:
            assert inbox.next_frame() is None
            inbox.give_back()


@pytest.mark.parametrize(
    ("start", "reason"),
    [(b"\x16\x03\x01\x02\x00\x01\x00", "TLS"), (b"GET / HTTP/1.1\r\n", "HTTP")],
)
def test_another_protocol_is_named(start: bytes, reason: str) -> None:
    with pytest.raises(ProtocolViolation, match=reason):
        feed(inbox_of(), start)


def test_what_may_not_be_begun_yet_leaves_the_shared_buffer() -> None:
    memory = RequestMemory()
    first, second = inbox_of(memory=memory), inbox_of(memory=memory)
    bodies = [b"f" * 40, b"g" * 50]
    data = b"".join(map(framed, bodies))
    first.room()[: len(data)] = data
    first.received(len(data))
    first.give_back()
    assert (memory.used_bytes, first.has_room) == (len(data), False)
    assert feed(second, framed(b"s" * 60)) == [b"s" * 60]
    assert [bytes(first.next_frame() or b""), bytes(first.next_frame() or b"")] == bodies
    first.give_back()
    assert (memory.used_bytes, first.has_room) == (0, True)


def test_beyond_the_bound_a_long_frame_waits_for_room_and_short_ones_do_not() -> None:
    memory = RequestMemory(bytes_max=300_000)
    first, second, third = (inbox_of(memory=memory) for _ in range(3))
    body = bytes(400_000)
    assert feed(first, framed(body)[:70_000]) == []  # any room is enough, as in Apache Kafka
    assert (first.is_starved, memory.is_full) == (False, True)
    assert feed(second, framed(body)[:10_000]) == []
    assert (second.is_starved, second.has_room) == (True, False)
    assert feed(third, framed(b"t" * 100)) == [b"t" * 100]
    assert feed(first, framed(body)[70_000:]) == [body]
    assert (second.next_frame(), second.is_starved) == (None, False)
    assert feed(second, framed(body)[10_000:]) == [body]
    assert memory.used_bytes == 0


def test_a_frame_that_was_begun_is_never_starved() -> None:
    """Else those that hold the room would wait for each other."""
    memory = RequestMemory(bytes_max=10 * AT_ONCE_BYTES_MAX)
    inbox, other = inbox_of(memory=memory), inbox_of(memory=memory)
    body = bytes(11 * AT_ONCE_BYTES_MAX)
    feed(inbox, framed(body)[:1000])
    assert memory.is_full
    feed(other, framed(bytes(2 * SHARED_BYTES))[:100])
    assert other.is_starved
    assert feed(inbox, framed(body)[1000:]) == [body]


@pytest.mark.parametrize("was_held_back", [False, True])
def test_those_who_wait_for_room_take_none_from_each_other(was_held_back: bool) -> None:
    """What they have received so far would be more than the bound, and nobody could go on, ever."""
    memory = RequestMemory(bytes_max=100_000)
    first, *others = (inbox_of(memory=memory) for _ in range(6))
    body = bytes(200_000)
    feed(first, framed(body)[:1000])
    for other in others:
        if was_held_back:
            data = framed(b"a" * 40) + framed(body)[:30_000]
            other.room()[: len(data)] = data
            other.received(len(data))
            other.give_back()
            assert bytes(other.next_frame() or b"") == b"a" * 40
            assert (other.next_frame(), other.is_starved) == (None, True)
            other.give_back()
        else:
            feed(other, framed(body)[:30_000])
        assert other.is_starved
    assert feed(first, framed(body)[1000:]) == [body]
    for other in others:
        assert not memory.is_full
        assert (other.next_frame(), other.is_starved) == (None, False)
        assert feed(other, framed(body)[30_000:]) == [body]
    assert memory.used_bytes == 0


def test_buffers_of_gone_connections_are_given_back() -> None:
    memory = RequestMemory()
    inbox = inbox_of(memory=memory)
    feed(inbox, framed(bytes(SHARED_BYTES * 2))[:1000])
    assert memory.used_bytes > 0
    inbox.close()
    assert (memory.used_bytes, inbox.waiting_bytes) == (0, 0)


@pytest.mark.parametrize(("key", "waits"), [(0, True), (1, False)], ids=["produce", "fetch"])
@pytest.mark.parametrize("cut", [1, 4, 5, 6, 1000])
def test_a_fetch_waits_for_no_room_that_others_use(key: int, waits: bool, cut: int) -> None:
    """It may be a follower's, without which the others' requests are not answered."""
    memory = RequestMemory(bytes_max=10)
    memory.promise(10)
    inbox, data = inbox_of(memory=memory), framed(pack(">h", key) + bytes(SHARED_BYTES * 2))
    feed(inbox, data[:cut])
    assert inbox.is_starved is (waits and cut >= 6)
    if not inbox.is_starved:
        assert feed(inbox, data[cut:]) == ([] if waits else [data[4:]])
    assert inbox.is_starved is waits
    assert memory.used_bytes == 10


def test_a_fetch_that_is_too_long_to_be_one_waits() -> None:
    memory = RequestMemory(bytes_max=10)
    memory.promise(10)
    inbox = inbox_of(memory=memory)
    feed(inbox, framed(pack(">h", 1) + bytes(FETCH_BYTES_MAX))[:1000])
    assert inbox.is_starved
