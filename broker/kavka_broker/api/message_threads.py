"""Threads that read large requests and write long answers, so that the loop serves others meanwhile."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kavka_broker.protocol.codec import bounded_decoder
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import encode_response_parts
from kavka_broker.protocol.message import Message, says

if TYPE_CHECKING:
    from kavka_broker.api.registry import Api

R = TypeVar("R")

AT_ONCE_BYTES_MAX: Final = 8 * 1024
"""Takes a millisecond to read at most."""
THREADS_MAX: Final = 2


class MessageThreads:
    """Reads requests and writes answers in threads, `THREADS_MAX` at a time."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(THREADS_MAX)

    async def read(self, frame: memoryview, body: int, api: "Api", version: int) -> Message:
        """The request in a frame. Raises ProtocolViolation, also where it has too many elements."""
        request, _ = await self._in_thread(bounded_decoder(api.request, version), frame, body)
        return request

    async def write(self, answer: Message, version: int, correlation_id: int) -> list[Any]:
        """The pieces of an answer, with size and header."""
        return await self._in_thread(encode_response_parts, answer, version, correlation_id)

    async def says(self, answer: Message, code: ErrorCode, request_bytes: int) -> bool:
        """Whether the code stands anywhere in the answer to a request of this size."""
        if request_bytes <= AT_ONCE_BYTES_MAX:
            return says(answer, code)
        return await self._in_thread(says, answer, code)

    async def _in_thread(self, function: Callable[..., R], *arguments: object) -> R:
        await self._free.acquire()
        work = asyncio.ensure_future(asyncio.to_thread(_outcome, function, arguments))
        work.add_done_callback(lambda _: self._free.release())
        # Shielded: a thread cannot be stopped, and its place is free when it is through.
        result, error = await asyncio.shield(work)
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


def _outcome(function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[Any, Exception | None]:
    try:
        return function(*arguments), None
    except Exception as error:  # noqa: BLE001 - raised again on the loop, if anybody still waits for it
        return None, error
