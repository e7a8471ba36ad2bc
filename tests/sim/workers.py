"""Seeds in several processes, each in one of its own with a limit to its memory; what comes of them, in their order.

A child is a fork that leaves without tidying up: nothing of one seed reaches another, and nobody collects its garbage.
One that does not come back, because the system has killed it for want of memory or an extension has crashed, is a seed
that has failed.
"""

import gc
import multiprocessing
import time
from collections import Counter, deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from tests.sim.cluster import Outcome, Simulation
from tests.sim.shapes import shape_of
from tests.sim.storm import storm
from tests.sim.watchdog import limit_addresses

STORY_LINES: Final = 60
AHEAD_MAX: Final = 4  # outcomes a job that wait for the one of an earlier seed
#: Played before so many are, for what a process learns once: codecs that are compiled, configs that are parsed.
WARMING_SEED: Final = 4
WARMED_FROM: Final = 10

Timed = tuple[Outcome, float]


def run_seed(seed: int, nodes: int | None = None, only: Sequence[str] = ()) -> Outcome:
    return Simulation(seed, shape_of(seed, nodes), partial(storm, only=only)).run()


def run_timed(seed: int, nodes: int | None, only: Sequence[str], lines: int | None) -> Timed:
    """The outcome with so many lines of its story, and what it took of CPU time."""
    started = time.process_time()
    outcome = run_seed(seed, nodes, only)
    story = outcome.story if lines is None else outcome.story[-lines:]
    return replace(outcome, story=story), time.process_time() - started


def run_seeds(
    seeds: Sequence[int], nodes: int | None, only: Sequence[str], *, jobs: int, lines: int | None = STORY_LINES
) -> Generator[Timed, None, None]:
    """So many at a time. Who stops asking for more ends those that run."""
    if len(seeds) >= WARMED_FROM:
        run_seed(WARMING_SEED)
    gc.collect()
    gc.freeze()  # what is loaded stays: no collection looks at it, and no child gets a copy
    waiting, children = iter(seeds), deque[Child]()
    try:
        while True:
            running = [child for child in children if child.timed is None]
            if len(running) < jobs and len(children) < AHEAD_MAX * jobs:
                seed = next(waiting, None)
                if seed is not None:
                    children.append(Child(seed, nodes, only, lines))
                    continue
            if not children:
                return
            if (timed := children[0].timed) is not None:
                children.popleft()
                yield timed
            else:
                ready = wait([child.answer for child in running])
                for child in running:
                    if child.answer in ready:
                        child.take()
    finally:
        for child in children:
            child.end()
        gc.unfreeze()


class Child:
    """A seed in a process of its own."""

    def __init__(self, seed: int, *how: Any) -> None:
        self.timed: Timed | None = None
        self._seed = seed
        fork = multiprocessing.get_context("fork")
        self.answer, theirs = fork.Pipe(duplex=False)
        self._process: BaseProcess = fork.Process(target=work, args=(theirs, seed, *how), daemon=True)
        self._process.start()
        theirs.close()

    def take(self) -> None:
        """Its answer, which is there; or its end."""
        try:
            self.timed = self.answer.recv()
        except EOFError:
            self._process.join()
            self.timed = lost(self._seed, f"its process has ended with {self._process.exitcode}"), 0.0
        self.end()

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.answer.close()


def work(answer: Connection, *how: Any) -> None:
    limit_addresses()
    gc.disable()
    answer.send(run_timed(*how))


def lost(seed: int, why: str) -> Outcome:
    """Of a seed of which nothing is known but that."""
    nothing: Counter[str] = Counter()
    return Outcome(seed, why, "", 0, 0.0, 0, nothing, nothing, nothing, ())
