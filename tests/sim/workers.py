"""Seeds in several processes, each with a limit to its memory; what comes of them, in the order of the seeds."""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

from tests.sim.cluster import Outcome, Simulation
from tests.sim.shapes import shape_of
from tests.sim.storm import storm
from tests.sim.watchdog import limit_addresses

STORY_LINES: Final = 60


def run_seed(seed: int, nodes: int | None = None, only: Sequence[str] = ()) -> Outcome:
    return Simulation(seed, shape_of(seed, nodes), partial(storm, only=only)).run()


def run_timed(seed: int, nodes: int | None, only: Sequence[str], lines: int | None) -> tuple[Outcome, float]:
    """The outcome with so many lines of its story, and what it took of CPU time."""
    started = time.process_time()
    outcome = run_seed(seed, nodes, only)
    story = outcome.story if lines is None else outcome.story[-lines:]
    return replace(outcome, story=story), time.process_time() - started


def run_seeds(
    seeds: Sequence[int], nodes: int | None, only: Sequence[str], *, jobs: int, lines: int | None = STORY_LINES
) -> Iterator[tuple[Outcome, float]]:
    """In this process with one job, in so many others with more. Who stops asking for more stops the run.

    Raises BrokenProcessPool where a worker was killed: by the system, out of memory, perhaps.
    """
    run = partial(run_timed, nodes=nodes, only=only, lines=lines)
    if jobs == 1:
        yield from map(run, seeds)
        return
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, mp_context=fork, initializer=limit_addresses) as pool:
        try:
            yield from pool.map(run, seeds)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
