"""Makes the event loop that a broker's process runs on: uvloop's, or asyncio's where uvloop is not installed.

`kavka.event.loop=asyncio` asks for asyncio's where both are there. Nothing else in the broker knows which of them it
runs on; the watchdog looks at each in its own way.
"""

import asyncio

from kavka_broker.logs import get

log = get("runtime")


def new_event_loop(name: str) -> asyncio.AbstractEventLoop:
    """Return a new loop of that name, and asyncio's where uvloop cannot be imported."""
    if name == "uvloop":
        try:
            from kavka_broker.runtime.uv_loop import UvLoop
        except ImportError as problem:
            log.warning("event_loop.not_found", reason=str(problem), instead="asyncio")
        else:
            return UvLoop()
    return asyncio.new_event_loop()
