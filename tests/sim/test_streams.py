"""Plays streams groups (KIP-1071) by themselves.

Worlds are longer here than a seed draws them: a group needs time to be joined, left and assigned again and again.
"""

from dataclasses import replace
from functools import partial

import pytest

from tests.sim.cluster import Simulation
from tests.sim.shapes import alone, plain
from tests.sim.storm import storm
from tests.support.drawn import in_turn

WORKLOADS = ("streams",)
KINDS = ("kill", "isolate", "pause", "bad_weather", "lost_answer", "late_packets", "clock_drift")
SECONDS = 40.0


def play(seed: int, kinds: tuple[str, ...]) -> Simulation:
    """Play the seed with three nodes and these faults; it has to succeed."""
    shape = replace(plain(alone(seed, 3, WORKLOADS)), seconds=SECONDS, pace=1)
    simulation = Simulation(seed, shape, partial(storm, kinds=kinds))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    return simulation


@pytest.mark.parametrize("seed", [3, *in_turn([7, 8, 12, 15], 4)])
def test_a_task_is_never_active_with_two_members(seed: int) -> None:
    simulation = play(seed, KINDS)
    counts = simulation.events.counts
    assert counts["played.streams_assigned"] > 0
    assert counts["played.streams_given_up"] > 0
    assert counts["played.streams_commits"] > 0
    assert counts["played.streams_commits_refused"] > 0
    assert counts["played.streams_haunted"] > 0
    assert simulation.replays.compared > 0
