"""An event loop in a thread of its own, for brokers and proxies beside a test that waits.

`run` carries a coroutine out there and waits for it. `close` ends the loop: it cancels what is left of tasks and waits
for the threads that the loop has used, so nothing of it stays.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

R = TypeVar("R")

START_SECONDS_MAX: Final = 60.0


class LoopThread:
    """The thread. `threads_max` bounds those in which the loop does what blocks."""

    def __init__(self, name: str, threads_max: int = 8) -> None:
        self.name = name
        self._threads_max = threads_max
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._ready = threading.Event()
        self.left: list[str] = []
        """The tasks that the loop had at its end; there should be none."""
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(START_SECONDS_MAX), "a loop starts at once"

    def run(self, work: Coroutine[Any, Any, R], seconds_max: float | None = None) -> R:
        """The result of a coroutine. Raises what it raises, and TimeoutError."""
        assert self._loop is not None, "the loop runs"
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds_max)
        except TimeoutError:
            future.cancel()
            raise

    def call(self, function: Any, *arguments: Any) -> None:
        """Have a function called in the loop, without waiting for it."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def close(self) -> None:
        """End the loop and its threads. To be called twice is no error."""
        if self._loop is not None and self._end is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def _main(self) -> None:
        asyncio.run(self._until_end())

    async def _until_end(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_default_executor(ThreadPoolExecutor(self._threads_max, f"{self.name} blocking"))
        self._ready.set()
        await self._end.wait()
        self.left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
