"""Voters whose metadata changes while they are down: nothing decided is lost, and they come back by themselves."""

from functools import partial

import pytest

from tests.sim.cluster import Simulation
from tests.sim.shapes import shape_of
from tests.sim.storm import storm
from tests.support.drawn import in_turn

NODES = 3


@pytest.mark.parametrize("seed", in_turn([1, 3, 4], 3))
def test_a_voter_with_damaged_metadata_promises_nothing_that_it_has_forgotten(seed: int) -> None:
    kinds = ("damaged_metadata", "kill", "controlled_restart")
    outcome = Simulation(seed, shape_of(seed, NODES), partial(storm, kinds=kinds)).run()
    assert outcome.failure is None, "\n".join([*outcome.story[-60:], outcome.failure])
    assert outcome.faults["damaged_metadata"]
