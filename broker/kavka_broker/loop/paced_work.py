"""Work in slices with a pause after each, for what nobody waits for and what may itself have to wait.

`Slices.run_aside` takes the next turn of the loop as soon as that is free: work that waits for a commit, by looking
again at each step, would hold a processor meanwhile. Here the next slice comes with the next tick of the timers.
"""

from collections.abc import Callable, Iterator
from typing import Final

from kavka_broker.loop.timers import Timers

PAUSE_MS: Final = 1


def run_paced(
    timers: Timers,
    work: Iterator[None],
    holds: Callable[[], bool] = lambda: True,
    then: Callable[[], object] = lambda: None,
) -> None:
    """Do a step of the work now, and another one after each pause; give it up when `holds` is false. Call `then` when
    it is over, also where a step of it raises.
    """
    PacedWork(timers, work, holds, then)()


class PacedWork:
    """A step of work at each call, and a call of its own for the next. The watchdog names it by its generator."""

    def __init__(
        self, timers: Timers, work: Iterator[None], holds: Callable[[], bool], then: Callable[[], object]
    ) -> None:
        self.__qualname__ = getattr(work, "__qualname__", type(work).__qualname__)
        self._timers = timers
        self._work = work
        self._holds = holds
        self._then = then

    def __call__(self) -> None:
        goes_on = False
        try:
            goes_on = self._holds() and next(self._work, self._work) is None
        finally:
            if goes_on:
                self._timers.after(PAUSE_MS, self)
            else:
                self._then()
