"""Whoever holds the loop is counted and named: while a callback runs, nobody else is served.

Each callback of the loop is timed, which takes a fifth of a microsecond. One that ran for longer than `HELD_SECONDS`
counts under its name, and is told in the log, once in a while. The name is that of the function; of a connection also
the API that it has served last, of the timers the one that fired last.

asyncio has this in its debug mode only, which costs several times as much as the broker itself. So `watch` puts itself
around `Handle._run`, through which every callback goes; a Python without that has no watchdog, and nothing else
changes.
"""

import asyncio
from asyncio import events
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

from kavka_broker.logs import get
from kavka_broker.runtime.log_rate_limit import Quiet

log = get("runtime")

HELD_SECONDS: Final = 0.010
WARNING_INTERVAL_S: Final = 10.0
NAMES_MAX: Final = 50
OTHER: Final = "__other__"


class Watchdog:
    """Counts how often, and for how long in all, callbacks have held the loop, by their names."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._quiet = Quiet(WARNING_INTERVAL_S)
        self._run: Callable[[Any], None] | None = None
        self.held: dict[str, tuple[int, float]] = {}

    def watch(self) -> None:
        """Time every callback of this process from now on."""
        self._run = run = getattr(events.Handle, "_run", None)
        if run is None:
            log.warning("loop.unwatched", reason="this Python's asyncio has no Handle._run")
            return
        clock, count = self._clock, self.count

        def timed(handle: Any) -> None:
            began = clock()
            run(handle)
            seconds = clock() - began
            if seconds > HELD_SECONDS:
                count(handle._callback, seconds)

        events.Handle._run = timed  # type: ignore[method-assign, assignment]

    def unwatch(self) -> None:
        if self._run is not None:
            events.Handle._run = self._run  # type: ignore[method-assign, assignment]
            self._run = None

    def count(self, callback: Any, seconds: float) -> None:
        """Note that the callback has held the loop for so long."""
        name = name_of(callback)
        key = name if name in self.held or len(self.held) < NAMES_MAX else OTHER
        count, total = self.held.get(key, (0, 0.0))
        self.held[key] = (count + 1, total + seconds)
        hushed = self._quiet.hushed()
        if hushed is not None:
            log.warning("loop.held", callback=name, for_ms=round(seconds * 1000), repeated=hushed)


def name_of(callback: Any) -> str:
    """Return the callback's name for a reader of the log."""
    while isinstance(callback, partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return getattr(owner.get_coro(), "__qualname__", "task")
    doing = getattr(owner, "doing", None)
    if doing is None and isinstance(owner, asyncio.BaseTransport):
        owner = owner.get_protocol() if hasattr(owner, "get_protocol") else owner
        return " ".join(filter(None, (type(owner).__qualname__, getattr(owner, "doing", ""))))
    return " ".join(filter(None, (getattr(callback, "__qualname__", type(callback).__qualname__), doing)))
