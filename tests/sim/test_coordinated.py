"""Plays transactional producers and their coordinators by themselves; a fifth of other seeds has them beside others."""

from dataclasses import replace
from functools import partial

import pytest

from tests.sim.cluster import Shape, Simulation
from tests.sim.playbook import settings
from tests.sim.shapes import shape_of
from tests.sim.storm import storm
from tests.support.drawn import in_turn

WORKLOADS = ("coordinated",)
KINDS = ("kill", "isolate", "pause")


def coordinated(seed: int, nodes: int | None = None) -> Shape:
    """What the seed draws, with this workload alone."""
    shape = shape_of(seed, nodes)
    return replace(shape, workloads=WORKLOADS, settings={**shape.settings, **settings(seed, WORKLOADS)})


@pytest.mark.parametrize("seed", [11, *in_turn([3, 6, 14], 3)])
def test_transactions_are_whole_and_once(seed: int) -> None:
    """11 found that nobody made the topic of offsets for a producer that was the first to commit any."""
    shape = replace(
        coordinated(seed, 3),
        changes=(),
        is_besieged=False,
        directories=1,
        has_voters_in_log=False,
        has_foreign=False,
        pace=1,
    )
    simulation = Simulation(seed, shape, partial(storm, kinds=KINDS))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    assert simulation.events.counts["played.coordinated_committed"] > 0
    assert simulation.events.counts["played.coordinated_aborted"] > 0


@pytest.mark.parametrize("seed", [5, 27])
def test_transactions_meet_every_fault_that_a_seed_draws(seed: int) -> None:
    """27 found that a snapshot of producers forgot the last batch of one that commits offsets in a transaction."""
    simulation = Simulation(seed, coordinated(seed), storm)
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    assert simulation.events.counts["played.coordinated_committed"] > 0
