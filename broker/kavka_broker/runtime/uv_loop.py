"""uvloop's event loop, whose timers never fire early."""

from asyncio import TimerHandle
from collections.abc import Callable
from contextvars import Context
from math import ceil
from typing import Final, TypeVarTuple

import uvloop

Arguments = TypeVarTuple("Arguments")

ROUNDING_MS: Final = 0.000_001
"""What a delay may be longer than whole milliseconds by its computation in seconds alone."""
DELAY_SECONDS_MAX: Final = 1e9
"""A longer delay, infinity among them, is uvloop's to bound."""


class UvLoop(uvloop.Loop):
    """A loop of libuv, which counts in whole milliseconds of the monotonic clock."""

    def call_later(
        self, delay: float, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> TimerHandle:
        """Call back once the delay is over.

        uvloop rounds a delay to the nearest millisecond. A timer that comes early finds nothing to do, and sets itself
        again and again for the rest, which rounds to nothing. `call_at` comes here, too.
        """
        if delay < DELAY_SECONDS_MAX:
            delay = ceil(delay * 1000 - ROUNDING_MS) / 1000
        return super().call_later(delay, callback, *args, context=context)
