"""Plays members of consumer groups that come together; a few other seeds have them beside others."""

from dataclasses import replace
from functools import partial

import pytest

from tests.sim.cluster import Shape, Simulation
from tests.sim.shapes import alone, plain
from tests.sim.storm import storm
from tests.support.drawn import in_turn

WORKLOADS = ("gatherers",)
KINDS = ("kill", "isolate", "pause", "bad_weather", "lost_answer", "reset", "clock_drift")
SECONDS = 40.0


def gatherers(seed: int) -> Shape:
    """What the seed draws, with three nodes and this workload alone, and for longer."""
    return replace(plain(alone(seed, 3, WORKLOADS)), seconds=SECONDS, pace=1)


@pytest.mark.parametrize("seed", in_turn([1, 2, 3, 4, 5, 6], 3))
def test_members_that_come_together_are_held_a_moment_and_assigned_in_time(seed: int) -> None:
    simulation = Simulation(seed, gatherers(seed), partial(storm, kinds=KINDS))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    counts = simulation.events.counts
    assert counts["played.consumers_held"] > 0
    assert counts["played.consumers_gathered"] > 0
    assert counts["played.consumed_assigned"] > 0
