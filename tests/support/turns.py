"""How much a loop does in one turn: calls of functions, which are the same on every machine, not time."""

import asyncio
import gc
import sys
from asyncio import events
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any, Final

from kavka_broker.loop.slices import Slices
from kavka_broker.loop.turns import QUANTUM_NS
from tools.mutants.running import PROBE

#: A tenth of a microsecond and more each.
CALLS_PER_TURN_MAX: Final = 30_000
#: Calls for each more of what a request names, or an answer.
GROWTH_MAX: Final = 0.9


def a_piece_a_turn(slices: Slices) -> None:
    """Let the time of a slice be over behind its first piece, on a quick machine as on a slow one: otherwise a turn may
    be of one piece, and the same turn of two a moment later.
    """
    slices.time.now_ns = count(step=QUANTUM_NS).__next__


class Turns:
    """Counts the calls in each callback of the loop."""

    def __init__(self) -> None:
        self._calls = 0
        self.most = 0

    def begin(self) -> None:
        self.most = 0

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and argument is frame.f_globals.get(PROBE):
            return  # it notes which statements run, where mutants are played, and is none of theirs
        self._calls += event in ("call", "c_call")

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count, without what garbage of other tests does when it is found."""
        run, of_the_test = events.Handle._run, asyncio.current_task()

        def counted(handle: Any) -> None:
            if getattr(handle._callback, "__self__", None) is of_the_test:
                run(handle)
                return
            self._calls = 0
            sys.setprofile(self._called)
            try:
                run(handle)
            finally:
                sys.setprofile(None)
                self.most = max(self.most, self._calls)

        events.Handle._run = counted  # type: ignore[method-assign, assignment]
        gc.disable()
        try:
            yield
        finally:
            gc.enable()
            events.Handle._run = run  # type: ignore[method-assign]
