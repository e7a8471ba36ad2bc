"""The memory that long answers take, of all connections together.

A short request may have an answer of many megabytes: it names groups, topics or transactions, or asks for all that
there are. So such answers are made a few at a time (`MAKING_MAX`), clients in turn by the bytes that each has had; and
none is begun while those that have been made and are not taken yet have `BYTES_MAX` or more. A request whose answer
turns out short has a place for as long as it is served: only others like it wait for that.

    a handler that lists     has a place from its beginning until its answer is written
    Metadata                 once its answer is found to be long, whose parts all answers share
    Produce and Fetch        have none: what they answer is bounded by what they ask, or by their sessions

What was written counts until the socket has taken it. A client that takes less than `TAKEN_BYTES_MIN` in `TAKING_MS`
while others wait for the room loses its connection.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kavka_broker.core.fair_queueing import FairQueue, Flow
from kavka_broker.interfaces import Clock
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["ANSWER_BYTES_MAX", "AnswerMemory", "Held", "Making"]

MAKING_MAX: Final = 8
BYTES_MAX: Final = 128 * 1024 * 1024
ANSWER_BYTES_MAX: Final = 100_000_000
"""An answer that is made part by part ends here, as librdkafka's `receive.message.max.bytes` does by default."""
TAKING_MS: Final = 10_000
TAKEN_BYTES_MIN: Final = 1024 * 1024
LOOK_MS: Final = 1_000

Turn = asyncio.Future[None]


class Making:
    """An answer that is being made."""

    __slots__ = ("_flow", "_memory", "size_bytes")

    def __init__(self, memory: "AnswerMemory", flow: Flow[Turn]) -> None:
        self._memory: AnswerMemory | None = memory
        self._flow = flow
        self.size_bytes = 0  # of its parts that are encoded

    def grow(self, size_bytes: int) -> None:
        """Count a part that has been encoded. Raises BrokerError (INVALID_REQUEST) where the answer grows too long."""
        assert self._memory is not None, "an answer that is written does not grow"
        self.size_bytes += size_bytes
        self._memory.used_bytes += size_bytes
        if self.size_bytes > ANSWER_BYTES_MAX:
            problem = f"the answer would have more than {ANSWER_BYTES_MAX} bytes: ask for less at a time"
            raise BrokerError(ErrorCode.INVALID_REQUEST, problem)

    def end(self) -> None:
        """Give the place back: the answer is written, or nobody wants it any more. Twice does nothing."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.ended(self._flow, self.size_bytes)


class Held:
    """Long answers, as far as a connection has not taken them yet."""

    __slots__ = ("_close", "_memory", "_since_ms", "_taken_bytes", "size_bytes")

    def __init__(self, memory: "AnswerMemory", close: Callable[[str], None]) -> None:
        self._memory = memory
        self._close = close
        self.size_bytes = 0
        self._since_ms = self._taken_bytes = 0

    def grow(self, size_bytes: int) -> None:
        """Count bytes of an answer that the socket has not taken at once."""
        if not self.size_bytes:
            self._since_ms, self._taken_bytes = self._memory.now_ms, 0
            self._memory.holders[self] = None
        self.size_bytes += size_bytes
        self._memory.used_bytes += size_bytes

    def shrink(self, waiting_bytes: int) -> None:
        """Note that no more than so many bytes wait to be taken."""
        taken_bytes = self.size_bytes - waiting_bytes
        if taken_bytes <= 0:
            return
        self.size_bytes = waiting_bytes
        self._taken_bytes += taken_bytes
        if not waiting_bytes:
            self._memory.holders.pop(self, None)
        self._memory.give_back(taken_bytes)

    def close_if_slow(self, now_ms: int) -> None:
        """Close the connection of a client that has taken too little since it was looked at last."""
        if now_ms - self._since_ms < TAKING_MS:
            return
        if self._taken_bytes < min(TAKEN_BYTES_MIN, self._taken_bytes + self.size_bytes):
            self._close(
                f"it has taken {self._taken_bytes} bytes of its answers in {now_ms - self._since_ms} ms, and others"
                " wait for the memory"
            )
        self._since_ms, self._taken_bytes = now_ms, 0


class AnswerMemory:
    """Counts long answers that are made, and those that are not taken yet."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock, self._timers = clock, timers
        self.used_bytes = 0
        self.holders: dict[Held, None] = {}
        self._making = 0
        self._queue: FairQueue[Turn] = FairQueue()
        self._look: Timer | None = None

    @property
    def now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    @property
    def is_full(self) -> bool:
        """Whether a request that may have a long answer has to wait."""
        return self._making >= MAKING_MAX or self.used_bytes >= BYTES_MAX

    def begin(self, user: str, client_id: str) -> Making:
        """Count an answer that is being made, whether there is room or not."""
        self._making += 1
        return Making(self, self._queue.join(user, client_id))

    async def turn(self, user: str, client_id: str) -> Making:
        """Wait for room, and begin. Clients have it in turn."""
        flow = self._queue.join(user, client_id)
        try:
            if self.is_full or len(self._queue):
                await self._wait(flow)
            else:
                self._making += 1
        except BaseException:
            self._queue.leave(flow)
            raise
        return Making(self, flow)

    def held(self, close: Callable[[str], None]) -> Held:
        """Return the count of a connection that `close` closes, with a reason."""
        return Held(self, close)

    def ended(self, flow: Flow[Turn], size_bytes: int) -> None:
        """Count an answer that is not being made any more."""
        self._making -= 1
        self._queue.charge(flow, size_bytes)
        self._queue.leave(flow)
        self.give_back(size_bytes)

    def give_back(self, size_bytes: int) -> None:
        """Count bytes that are not there any more, and let those begin for whom there is room."""
        self.used_bytes -= size_bytes
        self._pass_on()

    async def _wait(self, flow: Flow[Turn]) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._queue.wait(flow, turn)
        self._look_later()
        try:
            await turn
        except BaseException:
            self._queue.forget(flow, turn)
            if not turn.cancelled():  # the turn was given, and is not used
                self._making -= 1
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while not self.is_full and (taken := self._queue.take()) is not None:
            _, turn = taken
            if not turn.done():  # otherwise given up just now
                self._making += 1
                turn.set_result(None)

    def _look_later(self) -> None:
        """Look after slow clients in a while, for as long as others wait."""
        if self._look is None:
            self._look = self._timers.after(LOOK_MS, self._look_now)

    def _look_now(self) -> None:
        self._look = None
        if not len(self._queue):
            return
        if self.used_bytes >= BYTES_MAX:
            now_ms = self.now_ms
            for held in list(self.holders):
                held.close_if_slow(now_ms)
        self._look_later()
