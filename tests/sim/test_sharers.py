"""Plays share groups (KIP-932) by themselves, beside the share of ordinary seeds that play them too.

Worlds are longer here than a seed draws them: a group needs time to be joined, left and assigned again and again.
"""

from dataclasses import replace
from functools import partial

import pytest

from tests.sim.cluster import Simulation
from tests.sim.shapes import alone, plain
from tests.sim.sharers import Sharers
from tests.sim.storm import storm
from tests.sim.workers import run_seed
from tests.support.drawn import in_turn

WORKLOADS = ("sharers",)
KINDS = ("kill", "isolate", "pause", "bad_weather", "lost_answer", "late_packets", "clock_drift")
SECONDS = 40.0


def play(seed: int, kinds: tuple[str, ...]) -> Simulation:
    """Play the seed with three nodes and these faults; it has to succeed."""
    shape = replace(plain(alone(seed, 3, WORKLOADS)), seconds=SECONDS, pace=1)
    simulation = Simulation(seed, shape, partial(storm, kinds=kinds))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    return simulation


@pytest.mark.parametrize("seed", [3, *in_turn([7, 8, 12, 15, 80008], 4)])
def test_what_is_accepted_never_comes_back(seed: int) -> None:
    simulation = play(seed, KINDS)
    counts = simulation.events.counts
    assert counts["played.shared_acquired"] > 0
    assert counts["played.shared_accepted"] > 0
    assert counts["played.shared_released"] > 0
    assert counts["played.shared_redelivered"] > 0
    assert counts["played.shared_renewed"] > 0
    assert simulation.replays.compared > 0


@pytest.mark.extended
@pytest.mark.parametrize(
    "seed",
    [
        7300023,  # dead connections of a node's former lives were as many as max.connections.per.ip allows
        4054044,  # a voter cut its damaged log, lost its power, and voted as if it had never had more
    ],
)
def test_what_was_found_with_share_groups_stays_fixed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Seeds that play share groups here alone; 15 s of a processor."""
    monkeypatch.setattr(Sharers, "share", 1.1)
    assert run_seed(seed).failure is None
