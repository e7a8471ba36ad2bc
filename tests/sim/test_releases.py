"""Plays nodes of two releases, with feature levels that are raised and lowered while transactions are open."""

from dataclasses import replace
from functools import partial

import pytest

from kavka_broker.core.metadata.image.features import METADATA_VERSION, SUPPORTED_LEVELS, TRANSACTION_VERSION
from kavka_broker.dispatch.handlers import load
from kavka_broker.request.registry import APIS
from tests.sim.changes import OF_FEATURES
from tests.sim.cluster import Simulation
from tests.sim.releases import FORMER_LEVELS, FORMER_VERSIONS
from tests.sim.shapes import plain
from tests.sim.storm import storm
from tests.sim.test_coordinated import coordinated
from tests.support.drawn import in_turn

KINDS = ("kill", "isolate", "pause", "controlled_restart")


def of_releases(seed: int) -> Simulation:
    shape = replace(plain(coordinated(seed, 3)), changes=(*OF_FEATURES, "reassign"), has_releases=True, pace=1)
    return Simulation(seed, shape, partial(storm, kinds=KINDS))


def test_the_former_release_speaks_what_nodes_ask_each_other_in_older_versions() -> None:
    """Each version of the table is one that the broker serves, and not its newest."""
    load()
    assert all(APIS[key].versions[0] <= version < APIS[key].request.VERSIONS[1] for key, version in
               FORMER_VERSIONS.items())  # fmt: skip
    assert FORMER_LEVELS[METADATA_VERSION][1] < SUPPORTED_LEVELS[METADATA_VERSION][1]


@pytest.mark.parametrize("seed", [1, *in_turn([2, 3, 4, 5, 6, 7, 8], 2)])
def test_transactions_are_whole_across_releases_and_levels(seed: int) -> None:
    simulation = of_releases(seed)
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    counts = simulation.events.counts
    assert counts["played.former_release"] > 0
    assert counts["played.present_release"] > 0
    assert counts["played.coordinated_committed"] > 0
    newest = simulation.invariants.image
    assert newest is not None
    assert newest.features.level(TRANSACTION_VERSION) in (0, 1, 2)
