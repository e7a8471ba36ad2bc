"""Refusals among the results of a decision leave no reference cycles: to collect what many leave holds the loop."""

import gc
from collections.abc import Callable

import pytest

from kavka_broker.core.metadata.decide.leader_moves import Election, elect_leaders
from kavka_broker.core.metadata.decide.reassignments import Reassign, reassign
from kavka_broker.core.metadata.decide.topics import CreateTopic, Defaults, GrowTopic, create_topics, grow_topics
from kavka_broker.core.metadata.image.metadata import Metadata
from tests.support.cluster import cluster, uuid

COUNT = 10
NAMES = [f"missing-{number}" for number in range(COUNT)]

DECISIONS: dict[str, Callable[[Metadata], list[object]]] = {
    "elect": lambda image: [*elect_leaders(image, Election.PREFERRED, [(name, 0) for name in NAMES]).response],
    "reassign": lambda image: [*reassign(image, [Reassign(name, 0, (1,)) for name in NAMES]).response],
    "create": lambda image: [
        *create_topics(image, [CreateTopic("/", uuid(at), 1, 1) for at in range(COUNT)], Defaults()).response
    ],
    "grow": lambda image: [*grow_topics(image, [GrowTopic(name, 2) for name in NAMES]).response],
}


@pytest.mark.parametrize("decide", DECISIONS.values(), ids=DECISIONS.keys())
def test_refusals_leave_no_cycles(decide: Callable[[Metadata], list[object]]) -> None:
    image = cluster(1)
    gc.collect()
    gc.disable()
    try:
        assert len(decide(image)) == COUNT
        assert gc.collect() == 0
    finally:
        gc.enable()
