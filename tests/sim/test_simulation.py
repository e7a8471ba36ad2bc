"""Plays seeds that nobody has played yet, and some again: a seed is a world; `make sim` plays thousands.

Both are drawn by the commit: each commit plays others, and the same ones wherever it is tested.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.runner import why_failed
from tests.sim.workers import run_seed
from tests.support.drawn import commit, in_turn

ROOT = Path(__file__).parents[2]
FRESH_COUNT = 30
FRESH_FIRST = 1_000_000  # below are seeds that people choose
KILLS_OF_ALL = 10  # in one world: there may be no time between them for a leader and a record
WORLDS = (1, 17, 36, 87)  # of one log directory, two, transactions, voters that come and go
WORLDS_PARTS = 2  # of which a commit plays one


def fresh_seeds() -> range:
    """The seeds of the commit that is checked out."""
    first = FRESH_FIRST + int(commit()[:6], 16) * FRESH_COUNT
    return range(first, first + FRESH_COUNT)


@pytest.mark.parametrize("seed", fresh_seeds())
def test_a_cluster_keeps_its_promises(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.failure is None, why_failed(outcome)
    assert outcome.acknowledged > 0 or outcome.faults["kill_all"] >= KILLS_OF_ALL


@pytest.mark.parametrize("seed", in_turn(WORLDS, WORLDS_PARTS))
def test_a_seed_is_a_world(seed: int) -> None:
    """Here, and in another process with another order of hashes."""
    outcome = run_seed(seed)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--first", str(seed), "--seeds", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"digest {outcome.digest}, {outcome.steps} steps" in ran.stdout


def test_a_seed_is_the_same_world_again_and_another_seed_is_another() -> None:
    """In one process: nothing is left of what was played before."""
    first, again, another = run_seed(WORLDS[0]), run_seed(WORLDS[0]), run_seed(WORLDS[1])
    assert (again.digest, again.steps) == (first.digest, first.steps)
    assert another.digest != again.digest
