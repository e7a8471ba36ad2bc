"""What becomes of the nodes of a cluster when its resource is another: all of it, where the loop takes one step.

Every part is asked of the rule that decides it later: who is restarted and in which order of `rollout`, who may go
together of `batches`, what is emptied of `drain`, which volumes are refused of `volumes`. A restart that something
stands in the way of now is in the order all the same; what is in its way is said beside it, and may be gone by then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.observed import (
    SeenBroker,
    SeenCluster,
    SeenNode,
    SeenQuorum,
    SeenTopic,
    SeenVolume,
    Survey,
    WantedNode,
)
from kavka_operator.domain.plan import ClusterPlan, GrowVolume, MoveReplicas, ResizeNode, StartNode
from kavka_operator.reconcile.cluster import NO_VOLUMES, reconcile
from kavka_operator.reconcile.drain import held_by
from kavka_operator.reconcile.resizing import resizes
from kavka_operator.reconcile.rollout.batches import Batch, next_batch
from kavka_operator.reconcile.rollout.diagnose import BROKER, CONTROLLER, Diagnosis, diagnose
from kavka_operator.reconcile.rollout.plan import RollPlan, plan
from kavka_operator.reconcile.rollout.roll import APPROVE, is_on, is_pending, roll
from kavka_operator.reconcile.scale_down import gone, shrink
from kavka_operator.reconcile.volume_growth import growing

REFUSALS = ("BadConfig", "VolumeRefused", "ShrinkRefused")
"""Reasons for which what is wanted is not done, whatever one waits for."""

NOT_ASKED = "its brokers were not asked"

Sizes = Mapping[tuple[str, int], int]
"""The bytes of a replica, by partition."""


@dataclass(frozen=True, slots=True)
class Restart:
    """A node that would be restarted. Those of one `wave` go at the same time."""

    node: int
    name: str
    wave: int
    reason: str


@dataclass(frozen=True, slots=True)
class Drained:
    """A node that would be emptied and go: its replicas and their bytes, None where they are not known."""

    node: int
    replicas: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Emptied:
    """The nodes of a pool that restarts empty, as their volumes end with their pods: the replicas that they copy from
    other brokers again and their bytes, None where they are not known.
    """

    pool: str
    nodes: tuple[int, ...]
    replicas: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The future of a cluster's nodes.

    `waits` is what a person or a window has to let go on, `in_the_way` what stands against it now and may end by
    itself, `refused` why something of it is not done. `voting` are the controllers that get a vote, `voteless` those
    that lose theirs. `plan` names the roll, to approve it by; None without one.
    """

    starts: tuple[StartNode, ...] = ()
    grows: tuple[GrowVolume, ...] = ()
    resizes: tuple[ResizeNode, ...] = ()
    restarts: tuple[Restart, ...] = ()
    drains: tuple[Drained, ...] = ()
    empties: tuple[Emptied, ...] = ()
    voting: tuple[int, ...] = ()
    voteless: tuple[int, ...] = ()
    at_risk: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    plan: str | None = None


def forecast(
    wanted: KafkaCluster,
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    cluster: SeenCluster | None,
    survey: Survey | None,
    now: datetime,
    volumes: Mapping[int, Sequence[SeenVolume]] = NO_VOLUMES,
    sizes: Sizes | None = None,
) -> Forecast:
    """The forecast for a cluster that is `wanted`. `cluster` and `survey` are None where no broker answers."""
    voting, voteless = _votes(nodes, survey)
    settled = _without(voteless, survey)
    first = reconcile(wanted, nodes, seen, cluster, settled, now, volumes)
    step = roll(wanted, nodes, seen, cluster, survey, now) if is_on(wanted, nodes, seen) else None
    rolling = _asked_for(wanted, plan(nodes, diagnose(nodes, seen, cluster, survey), survey))
    restarts, obstacles = _waves(rolling.order, survey, wanted.spec.rollout.max_concurrent)
    surplus = [node for number, node in sorted(seen.items()) if number not in {node.id for node in nodes}]
    former = gone((node.id for node in wanted.status.nodes), {*seen, *(node.id for node in nodes)}, settled)
    left = shrink(surplus, settled, _racks(nodes, cluster), former)
    is_waiting = step is not None and is_pending(step)
    return Forecast(
        starts=tuple(action for action in first.actions if isinstance(action, StartNode)),
        grows=growing(volumes),
        resizes=resizes(nodes, seen),
        restarts=restarts,
        drains=tuple(_drained(node, survey, sizes) for node in surplus if node.state != "Stopped"),
        empties=tuple(_emptied(rolling.order, seen, survey, sizes)),
        voting=voting,
        voteless=voteless,
        at_risk=rolling.at_risk if restarts else (),
        waits=_once((*(_blocked(step) if is_waiting else ()), *_held(rolling.order))),
        in_the_way=_once(
            words for words in (*(() if is_waiting else _blocked(step)), *obstacles) if NOT_ASKED not in words
        ),
        refused=_once(words for there in (first, left) for words in _refusals(there)),
        plan=rolling.hash if restarts else None,
    )


def _asked_for(wanted: KafkaCluster, found: RollPlan) -> RollPlan:
    """The roll without the nodes to which only another version of the operator gives other settings."""
    is_approved = wanted.metadata.annotations.get(APPROVE) == found.hash
    return replace(found, order=tuple(node for node in found.order if is_approved or not node.is_as_asked))


def _votes(nodes: Sequence[WantedNode], survey: Survey | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The controllers that get a vote, and those that lose theirs; none where voters never change."""
    if survey is None or not survey.quorum.directories:
        return (), ()
    wanted, voters = {node.id for node in nodes if CONTROLLER in node.roles}, set(survey.quorum.voters)
    return tuple(sorted(wanted - voters)), tuple(sorted(voters - wanted))


def _without(voteless: Sequence[int], survey: Survey | None) -> Survey | None:
    """The survey as it will be when these nodes have lost their votes, which they do before they go."""
    if survey is None or not voteless:
        return survey
    voters = tuple(number for number in survey.quorum.voters if number not in voteless)
    return replace(survey, quorum=replace(survey.quorum, voters=voters))


def _racks(nodes: Sequence[WantedNode], cluster: SeenCluster | None) -> dict[int, str | None]:
    """The racks of the brokers that stay and serve."""
    staying = {node.id for node in nodes}
    return {number: broker.rack for number, broker in (cluster.brokers if cluster else {}).items() if number in staying}


def _waves(order: Sequence[Diagnosis], survey: Survey | None, most: int) -> tuple[tuple[Restart, ...], tuple[str, ...]]:
    """The restarts, and what stands in the way of the first of them that may not go now."""
    found: list[Restart] = []
    obstacles: tuple[str, ...] = ()
    left, wave = list(order), 0
    while left:
        wave += 1
        batch = Batch() if survey is None or survey.doubt else next_batch(left, survey, most)
        together = batch.nodes or (left[0],)
        obstacles = obstacles or batch.obstacles
        found += [Restart(node.id, node.name, wave, node.words) for node in together]
        left = [node for node in left if node not in together]
    return tuple(found), obstacles


def _drained(node: SeenNode, survey: Survey | None, sizes: Sizes | None) -> Drained:
    if survey is None or survey.doubt:
        return Drained(node.id, None, None)
    held = held_by({node.id}, survey)
    return Drained(node.id, len(held), None if sizes is None else sum(sizes.get(found.key, 0) for found in held))


def _emptied(
    order: Sequence[Diagnosis], seen: Mapping[int, SeenNode], survey: Survey | None, sizes: Sizes | None
) -> Iterator[Emptied]:
    """Yield the pools of which nodes restart empty. A pod in which nothing has run holds no records."""
    pools: dict[str, set[int]] = {}
    for found in order:
        there = seen[found.id]
        if found.node.is_ephemeral and there.has_begun and not there.is_gated:
            pools.setdefault(found.node.pool, set()).add(found.id)
    for pool, nodes in pools.items():
        if survey is None or survey.doubt:
            yield Emptied(pool, tuple(sorted(nodes)), None, None)
            continue
        copied = [
            found.key
            for found in survey.partitions
            if len(found.replicas) > 1  # a partition of one replica holds its node in place
            for _ in nodes & set(found.replicas)
        ]
        size = None if sizes is None else sum(sizes.get(key, 0) for key in copied)
        yield Emptied(pool, tuple(sorted(nodes)), len(copied), size)


def _held(order: Sequence[Diagnosis]) -> Iterator[str]:
    """Yield the reason why a node of the roll is not restarted before a person has acted."""
    return (found.held_for for found in order if found.emptied)


def _blocked(step: ClusterPlan | None) -> tuple[str, ...]:
    """Words for all that a roll waits for."""
    if step is None:
        return ()
    return step.rollout.blocked_by if step.rollout is not None else tuple(word.message for word in step.words[:1])


def _refusals(found: ClusterPlan | None) -> Iterator[str]:
    for word in found.words if found is not None else ():
        if word.type == "Stalled" and word.reason in REFUSALS:
            yield f"{word.reason}: {word.message}"


def _once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def bytes_to_copy(move: MoveReplicas, there: SeenTopic, sizes: Sizes) -> int:
    """The bytes that a reassignment copies to brokers that do not have them."""
    return sum(
        sizes.get((move.name, index), 0) * len(set(replicas) - set(there.assignment.get(index, ())))
        for index, replicas in move.replicas.items()
    )


def as_told(before: KafkaCluster) -> tuple[SeenCluster, Survey]:
    """The cluster as its status tells it, where its brokers cannot be asked: who runs and decides, and of partitions
    nothing.
    """
    running = [node for node in before.status.nodes if node.state == "Running"]
    brokers = {node.id: SeenBroker(node.id, node.address or "", node.rack) for node in running if BROKER in node.roles}
    config = {name: value for name, value in before.spec.config.items() if name in before.status.managed_config}
    active = before.status.active_controller
    level: dict[int, int | None] = {node.id: 0 for node in running}
    quorum = SeenQuorum(active, (), level)
    return SeenCluster(before.status.cluster_id or "", active, brokers, config=config), Survey((), quorum, NOT_ASKED)
