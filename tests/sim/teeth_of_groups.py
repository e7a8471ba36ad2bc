"""Defects of groups: their offsets, and their members."""

from kavka_broker.coordinator.removals import Removals
from tests.sim.teething import Patch, tooth


@tooth("a group's offsets outlive a deleted topic, and count for another of its name", "", seeds="940008")
def offsets_outlive_their_topic(patch: Patch) -> None:
    patch.setattr(Removals, "is_gone", lambda self, name, since: False)
