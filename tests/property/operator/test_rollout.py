"""Any cluster, rolled while brokers crash, catch up slowly and controllers change: no restart ever takes away what
clients or controllers need, and the roll comes to its end."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.domain.observed import (
    NodeState,
    SeenBroker,
    SeenCluster,
    SeenNode,
    SeenPartition,
    SeenQuorum,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import ClusterPlan, ElectLeaders, RestartNode
from kavka_operator.reconcile.rollout.roll import is_on, roll
from tests.unit.operator.fakes import NOW, cluster

pytestmark = pytest.mark.thorough

TURNS_OF_TROUBLE = 60
TURNS_MAX = 600
TURNS_STOPPED_MAX = 100  # after which a roll that has stopped does not go on any more


@dataclass
class FakeNode:
    id: int
    roles: tuple[str, ...]
    fingerprint: str = "old"
    state: NodeState = "Running"
    caught_up: bool = True

    @property
    def serves(self) -> bool:
        return self.state == "Running"


@dataclass
class World:
    """A cluster that does what a real one does with restarts and crashes, one thing at a time, by chance."""

    random: Random
    nodes: dict[int, FakeNode]
    partitions: list[SeenPartition]
    bad: int | None  # never comes back with the new settings
    active: int = 0
    status: RolloutStatus | None = None
    restarts: list[int] = field(default_factory=list)

    def turn(self, *, trouble: bool) -> None:
        for node in self.nodes.values():
            if trouble and node.serves and self.random.random() < 0.02:
                self._down(node, "Restarting")
            elif trouble and node.serves and self.random.random() < 0.1:
                self._out_of_sync(node)
            elif self.random.random() < 0.4:
                self._on(node)
        self.partitions = [self._follow(partition) for partition in self.partitions]
        controllers = [each.id for each in self.nodes.values() if "controller" in each.roles and each.serves]
        if self.active not in controllers and controllers:
            self.active = self.random.choice(controllers)

    def _on(self, node: FakeNode) -> None:
        """One step of a node's way back."""
        match node.state:
            case "Stopping":
                self._down(node, "Starting")
                node.fingerprint = "new"
            case "Starting" | "Restarting" if node.id == self.bad and node.fingerprint == "new":
                node.state = "Failed"
            case "Restarting":
                node.state = "Starting"
            case "Starting":
                node.state = "Running"
            case "Running":
                node.caught_up = True

    def _down(self, node: FakeNode, state: NodeState) -> None:
        node.state = state
        self._out_of_sync(node)

    def _out_of_sync(self, node: FakeNode) -> None:
        """It may run and be slow all the same."""
        node.caught_up = node.id == self.active and node.serves
        self.partitions = [self._without(partition, node.id) for partition in self.partitions]

    def _without(self, one: SeenPartition, node: int) -> SeenPartition:
        """The last replica in sync stays so: it is the only one that may lead again."""
        isr = tuple(each for each in one.isr if each != node) or one.isr
        leader = next((each for each in isr if self.nodes[each].serves), None) if one.leader == node else one.leader
        return SeenPartition(one.topic, one.index, leader, one.replicas, isr, one.in_sync_min)

    def _follow(self, one: SeenPartition) -> SeenPartition:
        leader = one.leader if one.leader is not None else next((n for n in one.isr if self.nodes[n].serves), None)
        back = [n for n in one.replicas if n not in one.isr and self.nodes[n].serves and self.random.random() < 0.3]
        isr = (*one.isr, *(back if leader is not None else ()))
        return SeenPartition(one.topic, one.index, leader, one.replicas, isr, one.in_sync_min)

    def look(self) -> ClusterPlan | None:
        wanted = [WantedNode(node.id, "new", None, node.roles) for node in self.nodes.values()]
        seen = {node.id: SeenNode(node.id, node.state, node.fingerprint) for node in self.nodes.values()}
        brokers = {n.id: SeenBroker(n.id, "a:1") for n in self.nodes.values() if "broker" in n.roles and n.serves}
        resource = cluster()
        resource = resource.replaced({"status": resource.status.replaced({"rollout": self.status})})
        if not is_on(resource, wanted, seen):
            return None
        survey = Survey(tuple(self.partitions), self.quorum())
        return roll(resource, wanted, seen, SeenCluster("id", None, brokers), survey if brokers else None, NOW)

    def quorum(self) -> SeenQuorum:
        voters = {node.id: node for node in self.nodes.values() if "controller" in node.roles}
        behind = {number: 0 if each.serves and each.caught_up else None for number, each in voters.items()}
        return SeenQuorum(self.active if voters[self.active].serves else None, tuple(voters), behind)

    def act(self, plan: ClusterPlan) -> None:
        for action in plan.actions:
            match action:
                case RestartNode(node=number):
                    self.check(self.nodes[number])
                    self.restarts.append(number)
                    self.nodes[number].state = "Stopping"
                case ElectLeaders(partitions=keys):
                    self.partitions = [
                        self._elected(partition) if partition.key in keys else partition
                        for partition in self.partitions
                    ]
        self.status = plan.rollout

    def _elected(self, one: SeenPartition) -> SeenPartition:
        can = one.preferred in one.isr and self.nodes[one.preferred].serves
        leader = one.preferred if can else one.leader
        return SeenPartition(one.topic, one.index, leader, one.replicas, one.isr, one.in_sync_min)

    def check(self, node: FakeNode) -> None:
        """The promises of a roll, stated again."""
        assert node.fingerprint == "old", "restarted for nothing"
        if self.bad is not None:
            lost = self.nodes[self.bad]
            assert not (lost.state == "Failed" and lost.fingerprint == "new"), "goes on after one did not come back"
        if node.state in {"Restarting", "Failed"}:
            return  # it is down anyhow
        others = [each for each in self.nodes.values() if each is not node]
        assert all(other.state not in {"Stopping", "Starting"} or other.fingerprint == "old" for other in others)
        for partition in self.partitions:
            if node.id in partition.replicas and node.serves:
                left = set(partition.isr) - {node.id}
                assert len(left) >= min(partition.in_sync_min, len(partition.replicas) - 1), partition.name
        if "controller" in node.roles:
            quorum = self.quorum()
            left_over = [voter for voter in quorum.voters if voter != node.id and quorum.is_caught_up(voter)]
            assert len(left_over) >= min(len(quorum.voters) // 2 + 1, len(quorum.voters) - 1)
        stale = [other for other in others if other.fingerprint == "old"]
        if node.serves:
            assert all(each.serves for each in stale), "unready ones come first"
            assert node.id != self.active or not stale, "the active controller comes last"


@st.composite
def worlds(draw: st.DrawFn, *, bad: bool) -> World:
    combined = draw(st.booleans())
    brokers = draw(st.integers(1, 6))
    controllers = 0 if combined else draw(st.sampled_from([1, 3]))
    nodes = {n: FakeNode(n, ("broker", "controller") if combined else ("broker",)) for n in range(brokers)}
    nodes |= {n: FakeNode(n, ("controller",)) for n in range(brokers, brokers + controllers)}
    partitions = []
    for index in range(draw(st.integers(0, 8))):
        replicas = draw(st.permutations(range(brokers)))[: draw(st.integers(1, min(3, brokers)))]
        partitions.append(
            SeenPartition("orders", index, replicas[0], tuple(replicas), tuple(replicas), draw(st.integers(1, 3)))
        )
    active = draw(st.sampled_from([n for n, each in nodes.items() if "controller" in each.roles]))
    random = Random(draw(st.integers(0, 2**32)))
    world = World(random, nodes, partitions, draw(st.sampled_from(sorted(nodes))) if bad else None, active)
    for number in draw(st.sets(st.sampled_from(sorted(nodes)), max_size=2)):
        world._down(nodes[number], draw(st.sampled_from(["Restarting", "Starting", "Running"])))
    return world


def has_stopped(plan: ClusterPlan) -> bool:
    return plan.words[0].reason == "RolloutStopped"


def run(world: World, *, trouble: bool) -> bool:
    """Whether the roll came to its end."""
    turns_stopped = 0
    for number in range(TURNS_MAX):
        plan = world.look()
        if plan is None:
            return True
        turns_stopped = turns_stopped + 1 if has_stopped(plan) else 0
        if turns_stopped > TURNS_STOPPED_MAX:
            return False
        world.act(plan)
        world.turn(trouble=trouble and number < TURNS_OF_TROUBLE)
    return False


@settings(max_examples=150)
@given(worlds(bad=False), st.booleans())
def test_every_roll_keeps_its_promises_and_ends(world: World, trouble: bool) -> None:
    assert run(world, trouble=trouble)
    assert {node.fingerprint for node in world.nodes.values()} == {"new"}
    assert sorted(world.restarts) == sorted(world.nodes), "each once"
    assert all(partition.leader == partition.preferred for partition in world.partitions)
    assert world.look() is None


@settings(max_examples=100)
@given(worlds(bad=True), st.booleans())
def test_a_roll_stops_at_the_first_node_that_does_not_come_back(world: World, trouble: bool) -> None:
    assert not run(world, trouble=trouble)
    assert world.bad is not None
    assert world.nodes[world.bad].state == "Failed"
    assert len(set(world.restarts)) == len(world.restarts)
    plan = world.look()
    assert plan is not None
    assert has_stopped(plan)
