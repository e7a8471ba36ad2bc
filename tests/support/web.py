"""Serves an application of aiohttp to a test, which asks it as a browser does."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

SECONDS_MAX = 60.0


@contextmanager
def served(pages: web.Application, port: int = 0) -> Iterator[str]:
    """The address of an application, which a thread serves meanwhile."""
    loop, runner = asyncio.new_event_loop(), web.AppRunner(pages, handler_cancellation=True, shutdown_timeout=0.1)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
        return int(runner.addresses[0][1])

    try:
        port = asyncio.run_coroutine_threadsafe(start(), loop).result(SECONDS_MAX)
        yield f"http://127.0.0.1:{port}/"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(SECONDS_MAX)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
