"""What must be done to the nodes of a cluster, wherever they run.

A node that is not there is started, all of them at once, unless it would lack a volume that holds something
(`volumes`). One whose volumes ended with its pod begins again where nobody counts on what it held (`empty_starts`). A
node that runs with other settings than wanted is restarted in a roll (`rollout`), one at a time and never at the cost
of a partition; processor and memory are given to it while it runs, where that can be (`resizing`), and larger volumes
(`volume_growth`). Controllers get their votes and lose them one at a time (`quorum`), a node that is to go before it
goes. The nodes that the resource no longer wants are emptied and stopped (`scale_down`). Settings that brokers take
while they run are not the nodes' business but Kafka's (`brokers_config`).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.security import protocols_of
from kavka_operator.api.settings import broker_faults, dynamic
from kavka_operator.domain.name_lists import counted, named, some
from kavka_operator.domain.observed import SeenCluster, SeenNode, SeenVolume, Survey, WantedNode
from kavka_operator.domain.plan import (
    AlterBrokers,
    ClusterPlan,
    Plan,
    StartNode,
    Word,
    ready,
    reconciling,
    stalled,
)
from kavka_operator.reconcile import quorum
from kavka_operator.reconcile.cordoning import cordon, release
from kavka_operator.reconcile.drain import assigned
from kavka_operator.reconcile.empty_volumes import empty_starts
from kavka_operator.reconcile.resizing import resize
from kavka_operator.reconcile.rollout.roll import is_on, is_pending, roll
from kavka_operator.reconcile.rollout.windows import unknown_zones
from kavka_operator.reconcile.scale_down import gone, shrink
from kavka_operator.reconcile.volume_growth import grow
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
    found = broker_faults(wanted.spec.config, protocols_of(wanted.spec), is_secured=wanted.spec.is_secured)
    faults = [f"spec.config.{name}: {words}" for name, words in found]
    zones = unknown_zones(wanted.spec.rollout.windows)
    faults += [f'spec.rollout.windows: there is no time zone "{zone}"; write one as Europe/Berlin' for zone in zones]
    if faults:
        return Plan(words=stalled("BadConfig", "; ".join(faults)))
    refused = {**refusals(wanted, nodes, volumes), **last_copies(wanted, nodes, seen, survey, volumes)}
    absent = [node for node in nodes if node.id not in seen or seen[node.id].state == "Stopped"]
    if startable := [node for node in absent if node.id not in refused]:
        return Plan(tuple(StartNode(node.id) for node in startable), reconciling("Starting", _counted(nodes, seen)))
    begin = empty_starts(nodes, seen, survey, volumes)
    if begin.lift:
        return Plan(begin.lift, reconciling("Starting", "; ".join(map(str, begin.lift))), wanted.status.roll)
    if refused := {**refused, **begin.refused}:
        return Plan(words=stalled("VolumeRefused", "; ".join(refused.values())))
    seen = begin.told(seen)
    change = quorum.follow(nodes, seen, survey, wanted.status.roll)
    if change is not None and change.actions:
        return change
    step = roll(wanted, nodes, seen, cluster, survey, now) if is_on(wanted, nodes, seen) else None
    if step is not None and not is_pending(step):
        return step
    rest = _resized(_at_rest(wanted, nodes, seen, cluster, survey, change), nodes, seen, volumes)
    return rest if step is None else Plan(rest.actions, (*rest.words, *step.words), step.rollout)


def _resized(
    rest: ClusterPlan,
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    volumes: Mapping[int, Sequence[SeenVolume]],
) -> ClusterPlan:
    """The plan, or that of nodes that take other resources or larger volumes while they run, where nothing else is to
    be done.
    """
    if rest.actions or not _is_ready(rest):
        return rest
    return resize(nodes, seen) or grow(volumes) or rest


def _is_ready(rest: ClusterPlan) -> bool:
    return any((word.type, word.status) == ("Ready", "True") for word in rest.words)


def _at_rest(
    wanted: KafkaCluster,
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
    ids = {node.id for node in nodes}
    surplus = [node for number, node in sorted(seen.items()) if number not in ids]
    racks = {number: broker.rack for number, broker in (cluster.brokers if cluster else {}).items() if number in ids}
    former = gone((node.id for node in wanted.status.nodes), {*ids, *seen}, survey)
    lines, live = wanted.status.nodes, cluster.brokers if cluster else ()
    if change is not None:
        return change
    if (going := shrink(surplus, survey, racks, former)) is not None:
        return cordon(going, surplus, lines, live)
    return release(Plan(words=_words(nodes, seen, cluster, survey)), ids, lines, live)


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
    known = {*cluster.brokers, *seen, *(node.id for node in nodes)}
    return ready(f"{_run(nodes)}{_health(survey)}{_strangers(known, survey)}")


def _run(nodes: Sequence[WantedNode]) -> str:
    return "1 node runs" if len(nodes) == 1 else f"{len(nodes)} nodes run"


def _brokers(those: Sequence[int]) -> str:
    return named(those).replace("node", "broker", 1)


def _why(those: Sequence[int], seen: Mapping[int, SeenNode]) -> str:
    words = [f"{number}: {obstacle}" for number in those for obstacle in seen[number].obstacles]
    return f" ({some(words, 3, '; ')})" if words else ""


def _health(survey: Survey | None) -> str:
    """Words for partitions that cannot be used, or that lack replicas in sync. One replica alone is always in sync."""
    partitions = survey.partitions if survey else ()
    offline = [partition.name for partition in partitions if partition.leader is None]
    behind = [found.name for found in partitions if found.leader is not None and len(found.isr) < len(found.replicas)]
    words = f"; {some(offline)} {_have(offline)} no leader" if offline else ""
    return words + (f"; {some(behind)} {_have(behind)} fewer replicas in sync than wanted" if behind else "")


def _strangers(known: Collection[int], survey: Survey | None) -> str:
    """Words for replicas on nodes that are away and that this resource has never had. They are left where they are."""
    found = (
        {partition.name: assigned(partition, survey) - set(known) for partition in survey.partitions} if survey else {}
    )
    names = [name for name, numbers in found.items() if numbers]
    if not names:
        return ""
    nodes = sorted({number for numbers in found.values() for number in numbers})
    are = "is away and is" if len(nodes) == 1 else "are away and are"
    return f"; {some(names)} {_have(names)} replicas on {named(nodes)}, which {are} not of this KafkaCluster"


def _have(those: Sequence[object]) -> str:
    return "has" if len(those) == 1 else "have"
