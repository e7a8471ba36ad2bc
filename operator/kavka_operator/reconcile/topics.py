"""What must be done so that a cluster has the topic that a resource wants.

The resource owns the settings that it names and those that it once set, nothing else. A topic is known by its id, not
by its name: when somebody deleted it, or deleted it and made another, its records are gone and the resource says so
instead of quietly making an empty one; the annotation `kavka.dev/forget-topic-id` with the id that was lost is how a
person accepts the loss.
"""

from collections.abc import Iterator, Sequence

from kavka_operator.api.settings import same_value, topic_faults
from kavka_operator.api.topic import Topic
from kavka_operator.domain.name_lists import counted, named, some
from kavka_operator.domain.observed import SeenCluster, SeenTopic
from kavka_operator.domain.plan import (
    AddPartitions,
    AlterTopic,
    CreateTopic,
    DeleteTopic,
    KafkaPlan,
    MoveReplicas,
    Plan,
    TopicAction,
    ready,
    reconciling,
    stalled,
)
from kavka_operator.reconcile.drain import GIVE_UP
from kavka_operator.reconcile.replica_placement import spread

FORGET = "kavka.dev/forget-topic-id"
DEFAULT_REPLICAS_MAX = 3  # default.replication.factor where there are brokers enough
MIN_ISR = "min.insync.replicas"
RETENTION_KEYS = ("retention.ms", "retention.bytes")


def reconcile(wanted: Topic, seen: SeenTopic | None, cluster: SeenCluster, older: Topic | None = None) -> KafkaPlan:
    """The plan for one topic. `older` is another resource that claims the same topic and came first."""
    if older is not None:
        return Plan(
            words=stalled("Conflict", f'{older.identity} declares topic "{wanted.topic_name}" too and is older')
        )
    faults = [f"spec.config.{name}: {words}" for name, words in topic_faults(wanted.spec.config)]
    if faults:
        return Plan(words=stalled("BadConfig", "; ".join(faults)))
    lost = wanted.status.topic_id
    if lost is not None and wanted.metadata.annotations.get(FORGET) == lost:
        lost = None
    if seen is None:
        return _missing(wanted, lost) if lost else _create(wanted, cluster)
    if lost is not None and lost != seen.topic_id:
        return _replaced(lost, seen)
    return _adjust(wanted, seen, cluster)


def needs_records(wanted: Topic, seen: SeenTopic) -> bool:
    """Whether the plan depends on how many records the topic holds, which costs a request to each broker."""
    if wanted.metadata.deletion_timestamp is not None:
        return wanted.spec.deletion_policy == "DeleteIfEmpty"
    return wanted.spec.guards.retention_cut == "Refuse" and bool(_retention_cuts(wanted, seen))


def retire(gone: Topic, seen: SeenTopic | None, rivals: Sequence[Topic] = ()) -> KafkaPlan:
    """The plan for a topic whose resource is deleted. Only the topic with the id of the status is deleted.

    `rivals` are all other resources that claim the topic: it stays while one of them stays, and of several that are
    deleted together each has to want it gone.
    """
    if seen is None or seen.topic_id != gone.status.topic_id:
        return Plan()
    if any(rival.metadata.deletion_timestamp is None for rival in rivals):
        return Plan()
    policies = {topic.spec.deletion_policy for topic in (gone, *rivals)}
    if "Retain" in policies or ("DeleteIfEmpty" in policies and seen.records != 0):
        return Plan()
    return Plan((DeleteTopic(seen.name, seen.topic_id),))


def managed_after(wanted: Topic, plan: KafkaPlan) -> tuple[str, ...]:
    """The settings that are this resource's own once `plan` is carried out."""
    dropped = {key for action in plan.actions if isinstance(action, AlterTopic) for key in action.reset}
    kept = {key for key in wanted.status.managed_config if key in wanted.spec.config} - dropped
    made = {key for action in plan.actions if isinstance(action, AlterTopic | CreateTopic) for key in _keys(action)}
    return tuple(sorted(kept | made | set(wanted.spec.config)))


def _keys(action: AlterTopic | CreateTopic) -> set[str]:
    return set(action.set if isinstance(action, AlterTopic) else action.config)


def _create(wanted: Topic, cluster: SeenCluster) -> KafkaPlan:
    replicas, there = wanted.spec.replication_factor, len(cluster.brokers)
    expected = max(there, cluster.brokers_expected)
    if replicas is not None and replicas > expected:
        words = f"{counted(replicas, 'replica')} need {counted(replicas, 'broker')} and there {_are(expected)}"
        return Plan(words=stalled("TooFewBrokers", words))
    # While the cluster forms, a topic would lie on the first brokers; later it needs no more brokers than replicas.
    if there < (expected if cluster.is_forming else min(replicas or DEFAULT_REPLICAS_MAX, expected)):
        words = f'{there} of {expected} brokers have joined; topic "{wanted.topic_name}" waits for the others'
        return Plan(words=reconciling("WaitingForBrokers", words))
    action = CreateTopic(wanted.topic_name, wanted.spec.partitions, replicas, wanted.spec.config)
    return Plan((action,), reconciling("Creating", f'topic "{wanted.topic_name}" does not exist yet'))


def _missing(wanted: Topic, lost: str) -> KafkaPlan:
    return Plan(
        words=stalled(
            "Deleted",
            f'somebody deleted topic "{wanted.topic_name}" ({lost}) with its records; to have an empty one, annotate'
            f" this resource with {FORGET}={lost}",
        )
    )


def _replaced(lost: str, seen: SeenTopic) -> KafkaPlan:
    return Plan(
        words=stalled(
            "Replaced",
            f'somebody deleted topic "{seen.name}" and created it again: {lost} -> {seen.topic_id};'
            f" to take over the new one, annotate this resource with {FORGET}={lost}",
        )
    )


def _adjust(wanted: Topic, seen: SeenTopic, cluster: SeenCluster) -> KafkaPlan:
    refusals = [*_refused_growth(wanted, seen), *_refused_replicas(wanted, seen, cluster), *_refused_cuts(wanted, seen)]
    actions: list[TopicAction] = [*_grow(wanted, seen), *_reconfigure(wanted, seen), *_move(wanted, seen, cluster)]
    if refusals:
        return Plan(tuple(actions), stalled("Refused", "; ".join(refusals)))
    if actions:
        return Plan(tuple(actions), reconciling("Changing", "; ".join(map(str, actions))))
    if seen.offline:
        return Plan(words=reconciling("Offline", _offline(seen, cluster)))
    if seen.moving:
        names = some([f"{seen.name}-{index}" for index in seen.moving])
        return Plan(words=reconciling("Moving", f"replicas of {names} are being copied to other brokers"))
    return Plan(words=ready(_summary(seen)))


def _offline(seen: SeenTopic, cluster: SeenCluster) -> str:
    """Words for partitions without a leader: whom they wait for, and what to do where nobody will come."""
    words = f"{seen.offline} of {seen.partitions} partitions have no leader"
    if not seen.offline_on:
        return words
    away = [number for number in seen.offline_on if number not in cluster.brokers]
    if not away:
        return f"{words}, and no broker that runs is known to have all their records; {GIVE_UP}"
    are, them = ("is", "it") if len(away) == 1 else ("are", "them")
    brokers = named(away).replace("node", "broker", 1)
    return f"{words}; {brokers} with replicas of them {are} away: bring {them} back, or give records up: {GIVE_UP}"


def _summary(seen: SeenTopic) -> str:
    partitions = "1 partition" if seen.partitions == 1 else f"{seen.partitions} partitions"
    replicas = "1 replica" if seen.replication_factor == 1 else f"{seen.replication_factor} replicas"
    behind = f", {seen.under_replicated} under-replicated" if seen.under_replicated else ""
    return f"{partitions} with {replicas}{behind}"


def _may_grow(wanted: Topic, seen: SeenTopic) -> bool:
    compacted = "compact" in seen.values.get("cleanup.policy", "")
    return not compacted or wanted.spec.guards.compacted_growth == "Allow"


def _grow(wanted: Topic, seen: SeenTopic) -> Iterator[TopicAction]:
    if (wanted.spec.partitions or 0) > seen.partitions and _may_grow(wanted, seen):
        assert wanted.spec.partitions is not None
        yield AddPartitions(seen.name, wanted.spec.partitions)


def _refused_growth(wanted: Topic, seen: SeenTopic) -> Iterator[str]:
    total = wanted.spec.partitions
    if total is None:
        return
    if total < seen.partitions:
        yield f"the topic has {seen.partitions} partitions and {total} are wanted; partitions may only grow"
    if total > seen.partitions and not _may_grow(wanted, seen):
        yield (
            f"{seen.partitions} -> {total} partitions of a compacted topic moves keys between partitions;"
            " set spec.guards.compactedGrowth: Allow"
        )


def _move(wanted: Topic, seen: SeenTopic, cluster: SeenCluster) -> Iterator[TopicAction]:
    """The action for another number or other places of replicas; a reassignment under way ends first."""
    factor, placement = wanted.spec.replication_factor or seen.replication_factor, wanted.spec.placement
    if not 0 < factor <= len(cluster.brokers) or seen.moving or _is_below_min_isr(wanted, seen):
        return
    racks = {number: broker.rack for number, broker in cluster.brokers.items()}
    # A broker that is away for a while takes no part with it, as in a roll; nor is one filled that is to go.
    is_whole = cluster.brokers_expected in {0, len(racks)} and all(
        racks.keys() >= {*ids} for ids in seen.assignment.values()
    )
    over_racks, over_brokers = placement.racks == "Spread" and is_whole, placement.brokers == "Balance" and is_whole
    if wanted.spec.replication_factor is None and not (over_racks or over_brokers):
        return
    if replicas := spread(seen.assignment, factor, racks, over_racks=over_racks, over_brokers=over_brokers):
        is_more = any(len(seen.assignment[index]) != factor for index in replicas)
        words = f'spread the replicas of {counted(len(replicas), "partition")} of topic "{seen.name}"'
        yield MoveReplicas(seen.name, factor, replicas, "" if is_more else words)


def _is_below_min_isr(wanted: Topic, seen: SeenTopic) -> bool:
    """Whether fewer replicas are wanted than acks=all needs in sync, so that every write of it would be refused."""
    factor, least = wanted.spec.replication_factor, _min_isr(wanted, seen)
    return factor is not None and factor < seen.replication_factor and factor < least


def _min_isr(wanted: Topic, seen: SeenTopic) -> int:
    return int(wanted.spec.config.get(MIN_ISR, seen.values.get(MIN_ISR, "1")))


def _refused_replicas(wanted: Topic, seen: SeenTopic, cluster: SeenCluster) -> Iterator[str]:
    factor, brokers = wanted.spec.replication_factor, max(len(cluster.brokers), cluster.brokers_expected)
    if factor is not None and factor != seen.replication_factor and factor > brokers:
        yield f"{counted(factor, 'replica')} need {counted(factor, 'broker')} and there {_are(brokers)}"

    if _is_below_min_isr(wanted, seen):
        least = _min_isr(wanted, seen)
        yield (
            f"{seen.replication_factor} -> {counted(factor or 0, 'replica')} leaves fewer than {MIN_ISR}={least}, and"
            f" writes with acks=all would be refused; set spec.config.{MIN_ISR} to {factor} or less first"
        )


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"


def _retention_cuts(wanted: Topic, seen: SeenTopic) -> dict[str, tuple[str, str]]:
    """The retention settings that get shorter, as key -> (now, wanted)."""
    cuts = {}
    for key in RETENTION_KEYS:
        now, then = seen.values.get(key), wanted.spec.config.get(key)
        if now is not None and then is not None and _amount(then) < _amount(now):
            cuts[key] = (now, then)
    return cuts


def _amount(text: str) -> float:
    """The amount of a retention; -1 keeps forever."""
    return float("inf") if text.strip() == "-1" else float(text)


def _refused_cuts(wanted: Topic, seen: SeenTopic) -> Iterator[str]:
    if not _cuts_are_refused(wanted, seen):
        return
    for key, (now, then) in _retention_cuts(wanted, seen).items():
        records = "its records" if seen.records is None else f"{seen.records:,} records"
        yield f"{key} {now} -> {then} may delete some of {records}; set spec.guards.retentionCut: Allow"


def _cuts_are_refused(wanted: Topic, seen: SeenTopic) -> bool:
    return wanted.spec.guards.retention_cut == "Refuse" and seen.records != 0


def _reconfigure(wanted: Topic, seen: SeenTopic) -> Iterator[TopicAction]:
    held = _retention_cuts(wanted, seen) if _cuts_are_refused(wanted, seen) else {}
    to_set = {
        key: value
        for key, value in wanted.spec.config.items()
        if key not in held and (key not in seen.overrides or not same_value(key, seen.overrides[key], value))
    }
    former = [key for key in wanted.status.managed_config if key not in wanted.spec.config]
    to_reset = tuple(sorted(key for key in former if key in seen.overrides))
    if to_set or to_reset:
        yield AlterTopic(seen.name, to_set, to_reset)
