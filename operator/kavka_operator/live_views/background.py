"""Work that waits, beside the loop of the screen. The process ends without it: the thread is a daemon."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """The result of the work, which is done by a thread. Raises what the work raised."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    threading.Thread(target=_run, args=(work, loop, future), daemon=True).start()
    return await future


def _run(work: Callable[[], T], loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]) -> None:
    try:
        resolve: Callable[[], None] = partial(_resolve, future.set_result, future, work())
    except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
        resolve = partial(_resolve, future.set_exception, future, error)
    with suppress(RuntimeError):  # the screen is closed
        loop.call_soon_threadsafe(resolve)


def _resolve(how: Callable[[Any], None], future: asyncio.Future[T], value: object) -> None:
    if not future.done():
        how(value)
