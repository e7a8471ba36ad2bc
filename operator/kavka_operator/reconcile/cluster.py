"""What must be done to the nodes of a cluster, wherever they run.

A node that is not there is started, all of them at once. A node that runs with other settings than wanted is restarted,
one at a time and only while every other node runs, so that a change that breaks a node stops at the first. A node that
the resource no longer wants is not stopped: its replicas would have to move first.
"""

import hashlib
from collections.abc import Mapping, Sequence

from kavka_operator.api.cluster import KafkaCluster, RolloutStatus
from kavka_operator.api.settings import broker_faults
from kavka_operator.reconcile.plan import Plan, RestartNode, StartNode, Word, ready, reconciling, stalled
from kavka_operator.reconcile.seen import SeenCluster, SeenNode, WantedNode

APPROVE = "kavka.dev/approve-rollout"


def reconcile(
    wanted: KafkaCluster, nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode], cluster: SeenCluster | None
) -> Plan:
    """The plan for the nodes of a cluster. `cluster` is None while nobody answers."""
    faults = [f"spec.config.{name}: {words}" for name, words in broker_faults(wanted.spec.config)]
    if faults:
        return Plan(words=stalled("BadConfig", "; ".join(faults)))
    absent = [node for node in nodes if node.id not in seen or seen[node.id].state == "Stopped"]
    if absent:
        return Plan(tuple(StartNode(node.id) for node in absent), reconciling("Starting", _counted(nodes, seen)))
    if failed := [each for each in seen.values() if each.state == "Failed"]:
        return Plan(words=stalled("NodeFailed", "; ".join(f"node {each.id}: {each.message}" for each in failed)))
    if surplus := sorted(set(seen) - {node.id for node in nodes}):
        listed = ", ".join(map(str, surplus))
        return Plan(
            words=stalled("ShrinkRefused", f"nodes {listed} still hold replicas; wanted are {len(nodes)} nodes")
        )
    if not _all_run(seen):
        return Plan(words=reconciling("Starting", _counted(nodes, seen)))
    if stale := _stale(nodes, seen):
        return _roll(wanted, stale)
    return Plan(words=_words(nodes, seen, cluster))


def rollout_status(nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode]) -> RolloutStatus | None:
    """How far the nodes are on their way to the wanted settings; None when they are there."""
    stale = [node for node in nodes if node.id in seen and seen[node.id].fingerprint != node.fingerprint]
    if not stale:
        return None
    return RolloutStatus(plan=plan_hash(stale), done=len(nodes) - len(stale), total=len(nodes), current=stale[0].id)


def plan_hash(stale: Sequence[WantedNode]) -> str:
    """Names a roll, so that an approval does not outlive a change of mind."""
    text = " ".join(f"{node.id}:{node.fingerprint}" for node in stale)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _roll(wanted: KafkaCluster, stale: Sequence[WantedNode]) -> Plan:
    listed = ", ".join(str(node.id) for node in stale)
    if wanted.spec.rollout.hold:
        return Plan(words=reconciling("RolloutHeld", f"nodes {listed} wait for spec.rollout.hold: false"))
    approved = wanted.metadata.annotations.get(APPROVE)
    if wanted.spec.rollout.approval == "Manual" and approved != plan_hash(stale):
        wait = f"nodes {listed} wait for the annotation {APPROVE}={plan_hash(stale)}"
        return Plan(words=reconciling("RolloutWaits", wait))
    action = RestartNode(stale[0].id, "its settings have changed")
    return Plan((action,), reconciling("Rolling", f"{action}; {len(stale)} to go"))


def _stale(nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode]) -> list[WantedNode]:
    return [node for node in nodes if seen[node.id].fingerprint != node.fingerprint]


def _all_run(seen: Mapping[int, SeenNode]) -> bool:
    return all(each.state == "Running" for each in seen.values())


def _counted(nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode]) -> str:
    running = sum(each.state == "Running" for each in seen.values())
    waiting = "; ".join(f"node {each.id}: {each.message}" for each in seen.values() if each.message)
    return f"{running} of {len(nodes)} nodes run" + (f"; {waiting}" if waiting else "")


def _words(nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode], cluster: SeenCluster | None) -> tuple[Word, ...]:
    if cluster is None:
        return reconciling("NotAnswering", f"{_counted(nodes, seen)}, but none answers")
    brokers = [node.id for node in nodes if "broker" in node.roles]
    missing = [broker for broker in brokers if broker not in cluster.brokers]
    if missing:
        return reconciling("Registering", f"brokers {', '.join(map(str, missing))} have not joined yet")
    return ready("1 node runs" if len(nodes) == 1 else f"{len(nodes)} nodes run")
