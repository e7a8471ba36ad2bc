"""What must be done to the nodes of a cluster, wherever they run.

A node that is not there is started, all of them at once, unless it would lack a volume that holds something
(`volumes`). A node that runs with other settings than wanted is restarted in a roll (`rollout`), one at a time and
never at the cost of a partition. Controllers get their votes and lose them one at a time (`quorum`), a node that is to
go before it goes. The replicas of a node that the resource no longer wants are moved (`draining`), and it goes when it
holds none; one that is down and is still to hold some is started again. Settings that brokers take while they run are
not the nodes' business but Kafka's (`brokers_config`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.settings import broker_faults, dynamic
from kavka_operator.domain.plan import (
    AlterBrokers,
    ClusterPlan,
    GrowVolume,
    Plan,
    StartNode,
    StopNode,
    Word,
    ready,
    reconciling,
    stalled,
)
from kavka_operator.domain.seen import SeenCluster, SeenNode, SeenVolume, Survey, WantedNode
from kavka_operator.domain.words import counted, named, some
from kavka_operator.reconcile import quorum
from kavka_operator.reconcile.draining import held_by, moves, too_large
from kavka_operator.reconcile.rollout.roll import is_on, is_pending, roll
from kavka_operator.reconcile.rollout.windows import unknown_zones
from kavka_operator.reconcile.volumes import last_copies, refusals

NO_VOLUMES: Mapping[int, Sequence[SeenVolume]] = {}


def reconcile(
    wanted: KafkaCluster,
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    cluster: SeenCluster | None,
    survey: Survey | None,
    now: datetime,
    volumes: Mapping[int, Sequence[SeenVolume]] = NO_VOLUMES,
) -> ClusterPlan:
    """The plan for the nodes of a cluster. `cluster` and `survey` are None while no broker answers.

    `volumes` are the log directories of each node, as far as the platform knows them.
    """
    faults = [f"spec.config.{name}: {words}" for name, words in broker_faults(wanted.spec.config)]
    zones = unknown_zones(wanted.spec.rollout.windows)
    faults += [f'spec.rollout.windows: there is no time zone "{zone}"; write one as Europe/Berlin' for zone in zones]
    if faults:
        return Plan(words=stalled("BadConfig", "; ".join(faults)))
    refused = {**refusals(wanted, nodes, volumes), **last_copies(wanted, nodes, seen, survey)}
    absent = [node for node in nodes if node.id not in seen or seen[node.id].state == "Stopped"]
    if startable := [node for node in absent if node.id not in refused]:
        return Plan(tuple(StartNode(node.id) for node in startable), reconciling("Starting", _counted(nodes, seen)))
    if refused:
        return Plan(words=stalled("VolumeRefused", "; ".join(refused.values())))
    change = quorum.follow(nodes, seen, survey, wanted.status.rollout)
    if change is not None and change.actions:
        return change
    step = roll(wanted, nodes, seen, cluster, survey, now) if is_on(wanted, nodes, seen) else None
    if step is not None and not is_pending(step):
        return step
    rest = _grown(_at_rest(nodes, seen, cluster, survey, change), volumes)
    return rest if step is None else Plan(rest.actions, (*rest.words, *step.words), step.rollout)


def _grown(rest: ClusterPlan, volumes: Mapping[int, Sequence[SeenVolume]]) -> ClusterPlan:
    """The plan, or that of growing the volumes that are too small, where nothing else is to be done."""
    small = [(number, volume) for number, found in sorted(volumes.items()) for volume in found]
    growing = [GrowVolume(number, volume.name, volume.grows_to) for number, volume in small if volume.grows_to]
    is_ready = any((word.type, word.status) == ("Ready", "True") for word in rest.words)
    if not is_ready or rest.actions or not growing:
        return rest
    return Plan(tuple(growing), reconciling("Growing", "; ".join(map(str, growing))))


def _at_rest(
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    cluster: SeenCluster | None,
    survey: Survey | None,
    change: ClusterPlan | None,
) -> ClusterPlan:
    """The plan for nodes of which none is to be started or restarted now. `change` is what the voters wait for."""
    ours = [seen[node.id] for node in nodes]
    if failed := [node for node in ours if node.state == "Failed"]:
        return Plan(words=stalled("NodeFailed", "; ".join(f"node {node.id}: {node.message}" for node in failed)))
    if not all(node.state == "Running" for node in ours):
        return Plan(words=reconciling("Starting", _counted(nodes, seen)))
    surplus = [node for number, node in sorted(seen.items()) if number not in {node.id for node in nodes}]
    wanted = {node.id for node in nodes}
    racks = {number: broker.rack for number, broker in (cluster.brokers if cluster else {}).items() if number in wanted}
    return change or shrink(surplus, survey, racks) or Plan(words=_words(nodes, seen, cluster, survey))


def shrink(surplus: Sequence[SeenNode], survey: Survey | None, racks: Mapping[int, str | None]) -> ClusterPlan | None:
    """The plan for nodes that are no longer wanted; None if they are gone or cannot be judged now.

    `racks` are those of the brokers that stay and serve.
    """
    if survey is None or survey.doubt:
        return None
    held = {node.id: [partition.name for partition in held_by({node.id}, survey)] for node in surplus}
    if missed := [node.id for node in surplus if node.state == "Stopped" and held[node.id]]:
        words = f"{named(missed)}: no longer wanted, but there are replicas that only they can have"
        return Plan(tuple(map(StartNode, missed)), reconciling("Starting", words))
    there = [node for node in surplus if node.state != "Stopped"]
    if leaving := [node.id for node in there if node.state == "Stopping"]:
        return Plan(words=reconciling("Shrinking", f"{named(leaving)} on the way down"))
    if free := [node.id for node in there if not held[node.id] and node.id not in survey.quorum.voters]:
        return Plan((StopNode(free[0]),), reconciling("Shrinking", str(StopNode(free[0]))))
    if voting := [node.id for node in there if not held[node.id]]:
        return Plan(words=stalled("ShrinkRefused", f"{named(voting)} {_have(voting)} a vote; want it again"))
    return _drained([node.id for node in there], held, survey, racks) if there else None


def _drained(
    leaving: Sequence[int], held: Mapping[int, Sequence[str]], survey: Survey, racks: Mapping[int, str | None]
) -> ClusterPlan:
    """The plan that moves the replicas of nodes to others, and says how many are left."""
    if stuck := too_large(set(leaving), survey, len(racks)):
        words = f"{some(stuck)}: more replicas than brokers that stay and serve ({len(racks)})"
        return Plan(words=stalled("ShrinkRefused", f"{words}; want {named(leaving)} again, or fewer replicas"))
    left = "; ".join(f"node {number} holds {counted(len(held[number]), 'replica')}" for number in leaving)
    actions = tuple(moves(set(leaving), survey, racks))
    under_way = len(survey.moving) + sum(len(action.replicas) for action in actions)
    words = f"{left}; {counted(under_way, 'partition')} on the way to other brokers"
    return Plan(actions, reconciling("Shrinking", words))


def _have(those: Sequence[int]) -> str:
    return "has" if len(those) == 1 else "have"


def brokers_config(wanted: KafkaCluster, cluster: SeenCluster) -> Plan[AlterBrokers]:
    """The plan for the dynamic settings of all brokers."""
    target = {key: value for key, value in wanted.spec.config.items() if dynamic(key)}
    to_set = {key: value for key, value in target.items() if cluster.config.get(key) != value}
    former = [key for key in wanted.status.managed_config if key not in target]
    to_reset = tuple(sorted(key for key in former if key in cluster.config))
    return Plan((AlterBrokers(to_set, to_reset),)) if to_set or to_reset else Plan()


def managed_after(wanted: KafkaCluster, cluster: SeenCluster | None) -> tuple[str, ...]:
    """The altered settings that are this resource's own: what it asks for, and what is not given back yet."""
    if cluster is None:
        return wanted.status.managed_config
    target = {key for key in wanted.spec.config if dynamic(key)}
    return tuple(sorted((target | set(wanted.status.managed_config)) & set(cluster.config)))


def _counted(nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode]) -> str:
    ours = [seen[node.id] for node in nodes if node.id in seen]
    running = sum(node.state == "Running" for node in ours)
    waiting = "; ".join(f"node {node.id}: {node.message}" for node in ours if node.message)
    return f"{running} of {counted(len(nodes), 'node')} run" + (f"; {waiting}" if waiting else "")


def _words(
    nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode], cluster: SeenCluster | None, survey: Survey | None
) -> tuple[Word, ...]:
    if cluster is None:
        return reconciling("NotAnswering", f"{_counted(nodes, seen)}, but none answers")
    missing = [node.id for node in nodes if "broker" in node.roles and node.id not in cluster.brokers]
    if missing:
        have = "has" if len(missing) == 1 else "have"
        return reconciling("Registering", f"{_brokers(missing)} {have} not joined yet{_why(missing, seen)}")
    return ready("1 node runs" if len(nodes) == 1 else f"{len(nodes)} nodes run{_health(survey)}")


def _brokers(those: Sequence[int]) -> str:
    return named(those).replace("node", "broker", 1)


def _why(those: Sequence[int], seen: Mapping[int, SeenNode]) -> str:
    words = [f"{number}: {obstacle}" for number in those for obstacle in seen[number].obstacles]
    return f" ({some(words, 3, '; ')})" if words else ""


def _health(survey: Survey | None) -> str:
    behind = (
        [partition.name for partition in survey.partitions if len(partition.isr) < len(partition.replicas)]
        if survey
        else []
    )
    return (
        f"; {some(behind)} {'has' if len(behind) == 1 else 'have'} fewer replicas in sync than wanted" if behind else ""
    )
