"""Plays half of the seeds that found a defect once, and some that nobody has played yet; `make sim` plays thousands.

Both are drawn by the commit: each commit plays others, and the same ones wherever it is tested. What a kept seed found
has a test of its own besides; `make test-all` plays all of them.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.sim.cluster import Outcome
from tests.sim.runner import command_of
from tests.sim.shapes import shape_of
from tests.sim.workers import run_seed
from tests.support.drawn import commit, in_turn

ROOT = Path(__file__).parents[2]
SEEDS = Path(__file__).with_name("seeds.txt")
FIRST_SEED = 1
FRESH_COUNT = 30
FRESH_FIRST = 1_000_000  # below are seeds that people choose
KEPT_PARTS = 2  # of the kept seeds a commit plays one


def fresh_seeds() -> range:
    """The seeds of the commit that is checked out."""
    first = FRESH_FIRST + int(commit()[:6], 16) * FRESH_COUNT
    return range(first, first + FRESH_COUNT)


def past_failures() -> list[tuple[int, int | None]]:
    lines = (line.split() for line in SEEDS.read_text().splitlines() if line and not line.startswith("#"))
    return [(int(words[0]), int(words[1]) if words[1].isdigit() else None) for words in lines]


def seed_of(case: tuple[int, int | None]) -> str:
    """The name of a kept seed among the cases of a test."""
    seed, nodes = case
    return str(seed) if nodes is None else f"{seed}-{nodes}"


def told(outcome: Outcome, nodes: int | None = None) -> str:
    return "\n".join(
        [*outcome.story[-60:], f"seed {outcome.seed}: {outcome.failure}", f"replay: {command_of(outcome.seed, nodes)}"]
    )


#: Of the faults that several nodes were to meet in the kept seeds, those that might have taken what is promised.
REFUSED_SHARE_MAX = 0.5


@cache
def played(seed: int, nodes: int | None) -> Outcome:
    """Of a kept seed, which two tests look at."""
    return run_seed(seed, nodes)


@pytest.mark.parametrize("seed", fresh_seeds())
def test_a_cluster_keeps_its_promises(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.failure is None, told(outcome)
    assert outcome.acknowledged > 0


@pytest.mark.extended
def test_few_faults_are_refused() -> None:
    """What is not played finds nothing. A single node may seldom lose anything, so that its seeds do not count."""
    outcomes = [played(seed, nodes) for seed, nodes in past_failures() if shape_of(seed, nodes).nodes > 1]
    refused = sum(outcome.refused.total() for outcome in outcomes)
    begun = sum(outcome.faults[name] for outcome in outcomes for name in outcome.refused)
    assert refused / (refused + begun) <= REFUSED_SHARE_MAX, f"{refused} were refused, {begun} of their kinds begun"


@pytest.mark.parametrize("case", in_turn(past_failures(), KEPT_PARTS, seed_of))
def test_what_was_found_once_stays_fixed(case: tuple[int, int | None]) -> None:
    seed, nodes = case
    outcome = played(seed, nodes)
    assert outcome.failure is None, told(outcome, nodes)


@pytest.mark.parametrize("seed", [1, 17, 36, 87])  # of one log directory, two, transactions, voters that come and go
def test_a_seed_is_a_world(seed: int) -> None:
    """Here twice, and in another process with another order of hashes."""
    first, second = run_seed(seed), run_seed(seed)
    assert (first.digest, first.steps) == (second.digest, second.steps)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--first", str(seed), "--seeds", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"digest {first.digest}, {first.steps} steps" in ran.stdout


def test_another_seed_is_another_world() -> None:
    assert run_seed(FIRST_SEED).digest != run_seed(FIRST_SEED + 1).digest
