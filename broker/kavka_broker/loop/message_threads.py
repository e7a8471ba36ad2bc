"""A thread that reads large requests and writes long answers, so that the loop serves others meanwhile."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.codec import bounded_decoder
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import encode_response_parts
from kavka_broker.protocol.message import Message, says
from kavka_broker.protocol.wire import ELEMENTS_MAX

R = TypeVar("R")

AT_ONCE_BYTES_MAX: Final = 8 * 1024
"""Takes a millisecond to read at most."""
THREADS_MAX: Final = 1
"""A thread is busy in Python: a second one would only take turns with the first, and the loop with both."""


class MessageThreads:
    """Reads requests and writes answers in a thread; clients take turns."""

    def __init__(self, slices: Slices) -> None:
        self._threads = RequestThreads(slices, THREADS_MAX)

    async def read(self, frame: memoryview, body: int, kind: type[Message], version: int) -> tuple[Message, int]:
        """Return the request of this kind in a frame, and how many elements its arrays have. Raises ProtocolViolation,
        also where there are too many.
        """
        request, _, left = await self._threads.run(bounded_decoder(kind, version), frame, body)
        return request, ELEMENTS_MAX - left

    async def run(self, function: Callable[..., R], *arguments: object) -> R:
        """Return what a function makes of messages. Raises what it raises."""
        return await self._threads.run(function, *arguments)

    async def write(
        self, answer: Message, version: int, correlation_id: int, encoded: tuple[str, ...] = ()
    ) -> list[Any]:
        """The pieces of an answer, with size and header; its arrays at `encoded` are encoded already."""
        return await self._threads.run(encode_response_parts, answer, version, correlation_id, encoded)

    async def says(self, answer: Message, code: ErrorCode, request_bytes: int) -> bool:
        """Whether the error code is anywhere in the answer to a request of this size."""
        if request_bytes <= AT_ONCE_BYTES_MAX:
            return says(answer, code)
        return await self._threads.run(says, answer, code)
