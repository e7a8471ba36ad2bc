"""Ends a run that would never end by itself: a step that goes on forever, a process that takes all memory.

The loop counts steps; a circle within one step it cannot see. So a timer of the real world looks several times a second
whether the step is still the same one, and how much memory the process has taken. The bounds are far from what a
machine under load reaches, and a process that was stopped meanwhile has heard the timer once: nothing here depends
on how fast a step is, and nothing reaches the digest.
"""

import resource
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from tests.sim.loop import Exhausted, SimLoop

ADDRESSES_BYTES_MAX: Final = 8 * 2**30  # of a process that runs seeds: what no tick has time to see
FRAMES_TOLD: Final = 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may take, and how often that is looked at."""

    tick_seconds: float = 0.25
    step_ticks_max: int = 80  # that one step may see: 20 s
    memory_bytes_max: int = 2 * 2**30  # beyond what the process had


USUAL: Final = Bounds()


class Watchdog:
    """Looks at a loop from outside."""

    def __init__(self, loop: SimLoop, bounds: Bounds = USUAL) -> None:
        self._loop = loop
        self._bounds = bounds
        self._steps = -1
        self._ticks = 0
        self._memory_at_start = peak_bytes()
        self._is_telling = False

    def tick(self, _: int, frame: FrameType | None) -> None:
        """Raises Exhausted in whatever runs, and again with each tick until it is out of there."""
        if self._is_telling:
            return  # a machine so busy that the next tick comes meanwhile: the place is not here
        if frame is not None and frame.f_code.co_filename == __file__:
            return  # the watch is ending, and is not to be kept from it
        if self._loop.steps != self._steps:
            self._steps, self._ticks = self._loop.steps, 0
        self._ticks += 1
        taken_bytes = peak_bytes() - self._memory_at_start
        if self._ticks > self._bounds.step_ticks_max:
            self._end("one step goes on forever", frame)
        if taken_bytes > self._bounds.memory_bytes_max:
            self._end(f"the run has taken {taken_bytes >> 20} MiB of memory", frame)

    def _end(self, why: str, frame: FrameType | None) -> None:
        self._is_telling = True
        where = "".join(traceback.format_stack(frame)[-FRAMES_TOLD:])
        if self._loop.exhausted is None:  # what a later tick meets is only on its way out
            self._loop.exhausted = Exhausted(f"{why}, here:\n{where}")
        self._is_telling = False
        raise self._loop.exhausted


@contextmanager
def watching(loop: SimLoop, bounds: Bounds = USUAL) -> Iterator[None]:
    """Until the end of the block; in the main thread, which is the only one that a signal reaches."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, Watchdog(loop, bounds).tick)
    signal.setitimer(signal.ITIMER_REAL, bounds.tick_seconds, bounds.tick_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak_bytes() -> int:
    """The most memory that this process has had at a time."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def limit_addresses() -> None:
    """For the rest of this process: what it asks for beyond is a MemoryError where it asks."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = ADDRESSES_BYTES_MAX if most == resource.RLIM_INFINITY else min(most, ADDRESSES_BYTES_MAX)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
