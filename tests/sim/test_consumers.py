"""Plays consumer groups of the new protocol (KIP-848) by themselves; a few of other seeds have them beside others.

Worlds are longer here than a seed draws them: a group needs time to be joined, left and assigned again and again.
"""

from dataclasses import replace
from functools import partial

import pytest

from tests.sim.cluster import Shape, Simulation
from tests.sim.shapes import alone, plain
from tests.sim.storm import storm
from tests.support.drawn import in_turn

WORKLOADS = ("consumers",)
KINDS = ("kill", "isolate", "pause", "bad_weather", "lost_answer", "late_packets", "clock_drift")
SECONDS = 40.0


def consumers(seed: int, nodes: int | None = None) -> Shape:
    """What the seed draws, with this workload alone, and for longer."""
    return replace(alone(seed, nodes, WORKLOADS), seconds=SECONDS, pace=1, is_besieged=False)


def play(seed: int, kinds: tuple[str, ...]) -> Simulation:
    """Play the seed with three nodes and these faults; it has to succeed."""
    simulation = Simulation(seed, plain(consumers(seed, 3)), partial(storm, kinds=kinds))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    return simulation


@pytest.mark.parametrize("seed", [7, *in_turn([4, 11, 13, 15, 4006], 5)])
def test_a_partition_is_never_with_two_members(seed: int) -> None:
    simulation = play(seed, KINDS)
    counts = simulation.events.counts
    assert counts["played.consumed_assigned"] > 0
    assert counts["played.consumed_given_up"] > 0
    assert counts["played.consumed_commits"] > 0
    assert simulation.replays.compared > 0


def test_a_clock_that_is_set_back_holds_up_no_group() -> None:
    """9 found that the next assignment waited for the time that the last one had been made at."""
    assert play(9, ("clock_step", "kill", "isolate")).faults["clock_step"] > 0


@pytest.mark.parametrize("seed", in_turn([3, 5, 12], 3))
def test_consumers_meet_every_fault_that_a_seed_draws(seed: int) -> None:
    simulation = Simulation(seed, consumers(seed), storm)
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    assert simulation.events.counts["played.consumed_assigned"] > 0
