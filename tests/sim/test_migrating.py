"""Plays groups that are rolled between the classic protocol and KIP-848; a few other seeds have them beside others."""

from dataclasses import replace
from functools import partial

import pytest

from tests.sim.cluster import Shape, Simulation
from tests.sim.shapes import alone, plain
from tests.sim.storm import storm
from tests.support.drawn import in_turn

WORKLOADS = ("migrating",)
KINDS = ("kill", "isolate", "pause", "bad_weather", "lost_answer", "late_packets", "clock_drift")
SECONDS = 40.0


def migrating(seed: int) -> Shape:
    """What the seed draws, with three nodes and this workload alone, and for longer."""
    return replace(plain(alone(seed, 3, WORKLOADS)), seconds=SECONDS, pace=1)


@pytest.mark.parametrize("seed", in_turn([3, 4, 5, 6, 7, 11], 3))
def test_a_partition_is_never_with_two_members_of_either_protocol(seed: int) -> None:
    simulation = Simulation(seed, migrating(seed), partial(storm, kinds=KINDS))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    counts = simulation.events.counts
    assert counts["played.group_upgrades"] > 0
    assert counts["played.group_downgrades"] > 0
    assert counts["played.consumed_assigned"] > 0
    assert counts["played.consumed_commits"] > 0
