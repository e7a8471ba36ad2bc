"""Plays half of the seeds that found a defect once, which the commit draws; `make test-all` plays all of them.

What a kept seed found has a test of its own besides, since the story of a seed changes with the code.
"""

from functools import cache
from pathlib import Path

import pytest

from tests.sim.cluster import Outcome
from tests.sim.runner import why_failed
from tests.sim.shapes import shape_of
from tests.sim.workers import run_seed
from tests.support.drawn import in_turn

SEEDS = Path(__file__).with_name("seeds.txt")
KEPT_PARTS = 2  # of the kept seeds a commit plays one

#: Of the faults that several nodes were to meet in the kept seeds, those that might have taken what is promised.
REFUSED_SHARE_MAX = 0.5


def past_failures() -> list[tuple[int, int | None]]:
    lines = (line.split() for line in SEEDS.read_text().splitlines() if line and not line.startswith("#"))
    return [(int(words[0]), int(words[1]) if words[1].isdigit() else None) for words in lines]


def seed_of(case: tuple[int, int | None]) -> str:
    """The name of a kept seed among the cases of a test."""
    seed, nodes = case
    return str(seed) if nodes is None else f"{seed}-{nodes}"


@cache
def played(seed: int, nodes: int | None) -> Outcome:
    """Of a kept seed, which two tests look at."""
    return run_seed(seed, nodes)


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
    assert outcome.failure is None, why_failed(outcome, nodes)
