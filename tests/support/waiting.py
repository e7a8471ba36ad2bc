"""Waiting in tests: for what comes, never for a time.

`until` waits for what sockets, threads and processes bring about; its bound is there for what never comes. That
something does *not* happen is told by turns of the loop, where nothing else could bring it about, by requests that are
answered behind it (`InProcess.heard`), or in simulated time: there `pass_seconds` skips to the moment, and costs none.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from tests.sim.loop import SimLoop

SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.001
PAUSES: Final = 4  # of the time of a look
PAUSE_SECONDS_MAX: Final = 0.5


async def until(holds: Callable[[], object], seconds_max: float = SECONDS_MAX) -> None:
    """Wait for something to hold, by the loop's time. Raises TimeoutError."""
    async with asyncio.timeout(seconds_max):
        while not holds():
            await asyncio.sleep(POLL_SECONDS)


def until_outside(holds: Callable[[], object], seconds_max: float = SECONDS_MAX, what: str = "it comes true") -> None:
    """Wait for something of another process or thread, where there is no loop. Looking leaves most of the time to
    those that are looked at: some looks read a thousand objects.
    """
    begun = time.monotonic()
    deadline = begun + seconds_max
    while not holds():
        looked = time.monotonic()
        assert looked < deadline, f"not within {seconds_max:g} s: {what}"
        time.sleep(min(max(POLL_SECONDS, PAUSES * (looked - begun)), PAUSE_SECONDS_MAX))
        begun = time.monotonic()


async def turns(count: int = 10) -> None:
    """Let everything run that is ready now, and what that makes ready."""
    for _ in range(count):
        await asyncio.sleep(0)


async def pass_seconds(seconds: float) -> None:
    """Skip so much simulated time: all that is due until then has happened."""
    assert isinstance(asyncio.get_running_loop(), SimLoop), "only simulated time passes without being waited for"
    await asyncio.sleep(seconds)


async def for_ever() -> None:
    """Wait for nothing."""
    await asyncio.get_running_loop().create_future()


def play_simulated(scenario: Callable[[SimLoop], Awaitable[None]]) -> None:
    """Run a scenario in simulated time."""
    loop = SimLoop(1)

    async def play() -> None:
        await scenario(loop)

    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(play())
    finally:
        loop.bury()
        loop.close()
        asyncio.set_event_loop(None)
