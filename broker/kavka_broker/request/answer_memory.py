"""The memory that long answers take, of all connections together.

A short request may have an answer of many megabytes: it names groups, topics or transactions, or asks for all that
there are. So such answers are made a few at a time (`MAKING_MAX`), and none is begun while those that have been made
and are not taken yet have `BYTES_MAX` or more. Principals have places in turn by the bytes that each has had, and
addresses of clients without a login: by client ids one client could be many. A request whose answer turns out short has
a place for as long as it is served: only others like it wait for that.

    a handler that lists     has a place from its beginning until its answer is written, unless the request is short
                             and names all that it asks for
    Metadata of all topics   before the answer is made, where there are many; its parts are shared with the image
    CreateTopics 5           before the answer, with all configs of each topic, is made, where it names many
    other long answers       before they are written. Where there is no room, a request that names much waits before it
                             is served, as its answer would take more while it waits. No other does: to JoinGroup,
                             others have to come before there is an answer
    from another controller  count once they are here
    Produce and Fetch        have none: they are as long as the request, or are bounded by their sessions

What was written counts until the socket has taken it, also while answers before it are awaited. Where there is no room,
clients lose their connections that have not taken what they asked for in `TAKING_MS`, those with most first: a client
that takes little at a time must not stop everybody.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from kavka_broker.core.fair_queueing import FairQueue, Flow
from kavka_broker.interfaces import Clock
from kavka_broker.loop.fair_turns import Turn, give_turn, join_in_turn
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.protocol.errors import ProtocolViolation

__all__ = ["ANSWER_BYTES_MAX", "AnswerBounds", "AnswerMemory", "Held", "Making"]

MAKING_MAX: Final = 8
BYTES_MAX: Final = 128 * 1024 * 1024
ANSWER_BYTES_MAX: Final = 100_000_000
"""An answer that is made part by part ends here, as librdkafka's `receive.message.max.bytes` does by default."""
TAKING_MS: Final = 5_000
LOOK_MS: Final = 1_000
CLOSED_AT_ONCE_MAX: Final = 50
"""Connections that are closed in one step, which takes some four milliseconds with all that they give back."""
SOON_MS: Final = 1


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """Bounds of long answers."""

    making_max: int = MAKING_MAX  # at a time
    bytes_max: int = BYTES_MAX  # of all that are made, or not taken yet
    answer_bytes_max: int = ANSWER_BYTES_MAX  # of one that is made part by part
    taking_ms: int = TAKING_MS  # for which one may wait to be taken where there is no room
    look_ms: int = LOOK_MS  # between two looks after those that are not taken


BOUNDS: Final = AnswerBounds()


class Making:
    """An answer that is being made in a place, and then waits behind others of its connection until it is sent."""

    __slots__ = ("_flow", "_has_place", "_is_made", "_memory", "size_bytes")

    def __init__(self, memory: "AnswerMemory", flow: Flow[Turn]) -> None:
        self._memory = memory
        self._flow = flow
        self._has_place = True
        self._is_made = False
        self.size_bytes = 0  # of its parts that are encoded, and then of the whole

    def grow(self, size_bytes: int) -> None:
        """Count a part that has been encoded. Raises ProtocolViolation where the answer grows too long: in some
        versions no error could say so.
        """
        self.size_bytes += size_bytes
        self._memory.take(size_bytes)
        if self.size_bytes > (bytes_max := self._memory.bounds.answer_bytes_max):
            raise ProtocolViolation(f"an answer of more than {bytes_max} bytes: ask for less at a time")

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Give the place to others while the answer waits for anything but the loop. Its bytes count on, and it goes on
        without another wait: those that wait for room may have to wait for its bytes.
        """
        self._leave_place()
        try:
            yield
        finally:
            if not self._is_made:
                self._has_place = True
                self._memory.making_count += 1

    def made(self, size_bytes: int) -> None:
        """Give the place back, as the answer is written: it has so many bytes, for which its client is charged."""
        assert not self._is_made, "an answer is written once"
        self._memory.take(size_bytes - self.size_bytes)
        self.size_bytes = size_bytes
        self._leave()

    def end(self) -> None:
        """Give everything back: the answer is on its way, or its connection has ended."""
        if not self._is_made:
            self._leave()
        size_bytes, self.size_bytes = self.size_bytes, 0
        if size_bytes:
            self._memory.give_back(size_bytes)

    def _leave(self) -> None:
        self._is_made = True
        self._memory.made(self._flow, self.size_bytes)
        self._leave_place()

    def _leave_place(self) -> None:
        if self._has_place:
            self._has_place = False
            self._memory.give_place()


class Held:
    """The bytes of long answers that a connection has not taken yet."""

    __slots__ = ("_close", "_memory", "_older_bytes", "since_ms", "size_bytes")

    def __init__(self, memory: "AnswerMemory", close: Callable[[str], None]) -> None:
        self._memory = memory
        self._close = close
        self.size_bytes = 0
        self.since_ms = 0  # since then the oldest bytes wait, or something that came later
        self._older_bytes = 0  # what waited then, as far as it still does

    def grow(self, size_bytes: int) -> None:
        """Count bytes of an answer that is written."""
        if not self.size_bytes:
            self.since_ms, self._older_bytes = self._memory.now_ms, size_bytes
            self._memory.holders[self] = None
        self.size_bytes += size_bytes
        self._memory.take(size_bytes)

    def shrink(self, waiting_bytes: int) -> None:
        """Note that no more than so many bytes wait to be taken."""
        taken_bytes = self.size_bytes - waiting_bytes
        if taken_bytes <= 0:
            return
        self.size_bytes = waiting_bytes
        self._older_bytes -= taken_bytes
        if self._older_bytes <= 0:
            self.since_ms, self._older_bytes = self._memory.now_ms, waiting_bytes
        if not waiting_bytes:
            self._memory.holders.pop(self, None)
        self._memory.give_back(taken_bytes)

    def close(self, now_ms: int) -> None:
        """Close the connection: there is no room for the answers of others."""
        self._close(
            f"{self.size_bytes} bytes of its answers have waited for {now_ms - self.since_ms} ms to be taken,"
            " and there is no room for those of others"
        )


class AnswerMemory:
    """Counts long answers that are made, and those that are not taken yet."""

    def __init__(self, clock: Clock, timers: Timers, bounds: AnswerBounds = BOUNDS) -> None:
        self._clock, self._timers = clock, timers
        self.bounds = bounds
        self.used_bytes = 0
        self.holders: dict[Held, None] = {}
        self.making_count = 0
        self._queue: FairQueue[Turn] = FairQueue()
        self._look: Timer | None = None

    @property
    def now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    @property
    def waiting_count(self) -> int:
        """Return how many requests wait for room."""
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether a request that may have a long answer has to wait."""
        return self.making_count >= self.bounds.making_max or self.used_bytes >= self.bounds.bytes_max

    def place(self, client: tuple[str, str]) -> Making:
        """Begin an answer in a place, where there is room."""
        assert not self.is_full
        self.making_count += 1
        return Making(self, self._queue.join(*client))

    async def turn(self, client: tuple[str, str]) -> Making:
        """Wait for room, and begin. Clients have it in turn."""
        waits = self.is_full or len(self._queue) > 0
        if not waits:
            self.making_count += 1
        return Making(self, await join_in_turn(self._queue, client, waits=waits, give_back=self.give_place))

    def held(self, close: Callable[[str], None]) -> Held:
        """Return the count of a connection that `close` closes, with a reason."""
        return Held(self, close)

    def made(self, flow: Flow[Turn], size_bytes: int) -> None:
        """Charge the client of an answer that is written for its bytes."""
        self._queue.charge(flow, size_bytes)
        self._queue.leave(flow)

    def take(self, size_bytes: int) -> None:
        """Count bytes, whether there is room or not."""
        self.used_bytes += size_bytes
        if self.used_bytes >= self.bounds.bytes_max:
            self._look_later(self.bounds.look_ms)

    def give_back(self, size_bytes: int) -> None:
        """Count bytes that are not there any more, and let those begin for whom there is room."""
        self.used_bytes -= size_bytes
        self._pass_on()

    def give_place(self) -> None:
        """Give a place back, and let those begin for whom there is room."""
        self.making_count -= 1
        self._pass_on()

    def _pass_on(self) -> None:
        while not self.is_full and give_turn(self._queue):
            self.making_count += 1

    def _look_later(self, delay_ms: int) -> None:
        """Look after slow clients in a while, for as long as there is no room."""
        if self._look is None:
            self._look = self._timers.after(delay_ms, self.look)

    def look(self) -> None:
        """Close slow clients, if there is no room."""
        self._look = None
        if self.used_bytes >= self.bounds.bytes_max:
            has_more = self._close_slow()
            self._look_later(SOON_MS if has_more else self.bounds.look_ms)

    def _close_slow(self) -> bool:
        """Close connections that have not taken what they asked for in time, those with most first, as long as there
        would be no room. Returns whether there are more than are closed in one step.
        """
        now_ms, left_bytes = self.now_ms, self.used_bytes
        slow = [held for held in self.holders if now_ms - held.since_ms >= self.bounds.taking_ms]
        for held in nlargest(CLOSED_AT_ONCE_MAX, slow, key=lambda held: held.size_bytes):
            if left_bytes < self.bounds.bytes_max:
                return False
            left_bytes -= held.size_bytes
            held.close(now_ms)
        return len(slow) > CLOSED_AT_ONCE_MAX
