"""Clusters that are rolled in turn: so many at the same time, and no more."""

from dataclasses import dataclass, field

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import NodeState, SeenNode, WantedNode
from kavka_operator.domain.plan import NodeAction, RestartNode, StartNode
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.process.http_server import AddressError
from kavka_operator.process.operator import ROLLING, Options
from kavka_operator.process.roll_limiter import InTurn, Turns
from tests.unit.operator.fakes import cluster

FIRST, SECOND = ("shop", "first"), ("shop", "second")
RESTART = RestartNode(0, "image has changed")
WAITING = RolloutStatus(plan="p", total=2).signed()
ROLLING_NOW = RolloutStatus(plan="p", current=(0,), total=2).signed()


@dataclass
class Nodes:
    """A `Platform` of two nodes that have the former settings until they are restarted."""

    state: NodeState = "Running"
    marks: dict[int, str] = field(default_factory=lambda: {0: "old", 1: "old"})
    done: list[NodeAction] = field(default_factory=list)

    def look(self, cluster: KafkaCluster) -> View:
        seen = {number: SeenNode(number, self.state, mark) for number, mark in self.marks.items()}
        return View(wanted=[WantedNode(number, "new") for number in self.marks], seen=seen)

    def perform(self, action: NodeAction) -> None:
        self.done.append(action)
        if isinstance(action, RestartNode):
            self.marks[action.node] = "new"

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        return False


class Scene:
    """Two clusters, each with a roll to do."""

    def __init__(self, most: int = 1) -> None:
        self.there: set[ClusterKey] = {FIRST, SECOND}
        self.turns = Turns(most, lambda key: key in self.there)
        self.nodes = {key: Nodes() for key in (FIRST, SECOND)}
        self.platforms = {key: InTurn(key, self.nodes[key], self.turns) for key in self.nodes}

    def look(self, key: ClusterKey, roll: RolloutStatus | None = None) -> str:
        """What its nodes wait for."""
        told = cluster().replaced({"status": cluster().status.replaced({"rollout": roll})})
        (words,) = {node.queued for node in self.platforms[key].look(told).seen.values()}
        return words

    def restart(self, key: ClusterKey) -> bool:
        """Ask for a restart; whether it was begun."""
        before = len(self.nodes[key].done)
        self.platforms[key].perform(RESTART)
        return len(self.nodes[key].done) > before


def test_the_second_waits_until_the_roll_of_the_first_is_over() -> None:
    scene = Scene()
    assert [scene.look(key) for key in (FIRST, SECOND)] == ["", ""]
    assert scene.restart(FIRST)
    assert not scene.restart(SECOND), "both had looked before"
    scene.look(FIRST)
    assert scene.look(SECOND) == "the end of the roll of shop/first"
    scene.look(FIRST, ROLLING_NOW)
    assert scene.look(SECOND)
    scene.look(FIRST)
    assert scene.look(SECOND) == ""
    assert scene.restart(SECOND)
    assert scene.look(FIRST) == "the end of the roll of shop/second"


def test_a_roll_that_an_earlier_operator_has_begun_goes_on() -> None:
    scene = Scene()
    assert scene.look(FIRST, ROLLING_NOW) == scene.look(SECOND, ROLLING_NOW) == ""
    assert scene.restart(FIRST)
    assert scene.restart(SECOND)


def test_a_roll_that_waits_for_a_person_takes_no_turn() -> None:
    scene = Scene()
    assert scene.look(FIRST, WAITING) == ""
    assert scene.restart(SECOND)


def test_a_node_that_serves_nobody_and_one_that_is_absent_wait_for_no_turn() -> None:
    scene = Scene()
    scene.restart(FIRST)
    scene.nodes[SECOND].state = "Failed"
    scene.look(SECOND)
    assert scene.restart(SECOND)
    scene.platforms[SECOND].perform(StartNode(1))
    assert scene.nodes[SECOND].done[-1] == StartNode(1)


def test_a_cluster_that_is_deleted_in_its_turn_gives_it_back() -> None:
    scene = Scene()
    scene.restart(FIRST)
    scene.there.discard(FIRST)
    assert scene.look(SECOND) == ""
    assert scene.restart(SECOND)


def test_a_turn_that_no_status_ever_told_of_ends_when_all_nodes_are_as_wanted() -> None:
    scene = Scene()
    scene.look(FIRST)
    assert scene.restart(FIRST)
    scene.nodes[FIRST].marks = {0: "new", 1: "new"}
    for _ in range(3):
        scene.look(FIRST)
    assert scene.look(SECOND) == ""


@pytest.mark.parametrize("most", [0, 2])
def test_as_many_as_were_asked_for(most: int) -> None:
    scene = Scene(most)
    assert scene.restart(FIRST)
    assert scene.look(SECOND) == ""
    assert scene.restart(SECOND)


def test_how_many_is_told_by_the_environment() -> None:
    assert Options.of({}).rolling_max == 0
    assert Options.of({ROLLING: "3"}).rolling_max == 3
    with pytest.raises(AddressError, match=f'{ROLLING} is "few"; write how many'):
        Options.of({ROLLING: "few"})
