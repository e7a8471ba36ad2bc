"""Statuses: what is seen, in the words of the resource.

Pure, and equal for equal input, so that rest means no write.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kavka_broker.core.config.unserved_configs import topic_without_effect, without_effect
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import (
    BOOTSTRAP_LENGTH_MAX,
    LISTENER_LENGTH_MAX,
    CertificatesStatus,
    KafkaClusterStatus,
    LastRolloutStatus,
    ListenerStatus,
    NodeStatus,
    PoolStatus,
)
from kavka_operator.api.kinds import AnyResource
from kavka_operator.api.quota import BrokerUsage, ClientQuota, ClientQuotaStatus, RelatedQuota, entity_of
from kavka_operator.api.security import PLAINTEXT
from kavka_operator.api.stored_resources import Unreadable, part
from kavka_operator.api.topic import UNMANAGED_MAX, Move, Topic, TopicStatus
from kavka_operator.api.user import FOREIGN_MAX, KafkaUser, KafkaUserStatus, entity_of_user
from kavka_operator.domain.access_rules import declared, owned, texts
from kavka_operator.domain.certificates import SeenCertificates
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.name_lists import named, some
from kavka_operator.domain.node_ids import first_ids
from kavka_operator.domain.observed import SeenCluster, SeenNode, SeenTopic, SeenUsage, Survey, WantedNode
from kavka_operator.domain.plan import ClusterPlan, Word, dated, stalled
from kavka_operator.domain.quota_entities import as_meant, entity_text
from kavka_operator.quota.shadows import Neighbours, level_of, shadowed_by, shadows
from kavka_operator.reconcile import volume_usage
from kavka_operator.reconcile.cluster import managed_after
from kavka_operator.reconcile.drain import GIVE_UP
from kavka_operator.reconcile.drift import told
from kavka_operator.reconcile.operator_quota_warning import internal_words
from kavka_operator.reconcile.quota_budgets import parts
from kavka_operator.reconcile.quotas import active_override, target_values
from kavka_operator.reconcile.reassignments import LISTS
from kavka_operator.reconcile.scale_down import gone
from kavka_operator.reconcile.topics import FORGET
from kavka_operator.reconcile.users import limits_of

Status = KafkaClusterStatus | TopicStatus | ClientQuotaStatus | KafkaUserStatus

ANONYMOUS = "ANONYMOUS"
"""The user of every client that no listener asks who it is."""


def topic_status(
    topic: Topic,
    seen: SeenTopic | None,
    words: Sequence[Word],
    now: datetime,
    move: Move | None = None,
    *,
    is_external: bool = False,
) -> TopicStatus:
    """The status of a topic, with the move of its replicas, if there is one (`reconcile.reassignments`).

    `is_external` where others run its cluster.
    """
    common = _common(topic, words, now, is_external=is_external)
    known = topic.status.topic_id
    if known is not None and topic.metadata.annotations.get(FORGET) == known:
        known = None
    conflict = any(word.reason == "Conflict" for word in words)
    if seen is None or conflict:
        return topic.status.replaced({**common, "topic_name": topic.topic_name, "topic_id": known, "move": move})
    owned = {*topic.status.managed_config, *topic.spec.config, *(LISTS if topic.status.move else ())}
    return TopicStatus(
        **common,
        topic_name=seen.name,
        topic_id=known or seen.topic_id,
        partitions=seen.partitions,
        replication_factor=seen.replication_factor,
        under_replicated=seen.under_replicated,
        offline=seen.offline,
        managed_config=topic.status.managed_config,
        unmanaged_config=tuple(f"{key}={value}" for key, value in sorted(seen.overrides.items()) if key not in owned)[
            :UNMANAGED_MAX
        ],
        move=move,
        last_correction=topic.status.last_correction,
    )


def user_status(
    user: KafkaUser, seen: SeenCluster, words: Sequence[Word], now: datetime, place: str
) -> KafkaUserStatus:
    """The status of a user, whose Secret is in this place."""
    common = {**_common(user, words, now, is_external=seen.is_external), "user_name": user.user_name}
    if seen.access is None or any(word.reason in {"Conflict", "Protected"} and _stalls(word) for word in words):
        return user.status.replaced(common)
    there = frozenset((seen.access.rules or {}).get(user.principal, frozenset()))
    ours = (declared(user) | owned(user)) & there
    in_kafka = seen.quotas.get(entity_of_user(user), {})
    keys = {*user.status.quotas, *limits_of(user)}
    finite = {key: value for key, value in in_kafka.items() if math.isfinite(value)}
    return KafkaUserStatus(
        **common,
        secret=place if user.mechanism is not None else None,
        credential=user.status.credential,
        acls=texts(ours),
        acl_count=len(ours),
        unmanaged_acls=texts(there - ours)[:FOREIGN_MAX],
        quotas={key: value for key, value in finite.items() if key in keys},
        unmanaged_quotas={key: value for key, value in finite.items() if key not in keys},
        last_correction=user.status.last_correction,
    )


def _stalls(word: Word) -> bool:
    return (word.type, word.status) == ("Stalled", "True")


def with_words(
    resource: AnyResource,
    words: Sequence[Word],
    now: datetime,
    *,
    is_external: bool = False,
    knows_users: bool = False,
) -> Status:
    """The status as it was, with other conditions; `is_external` where others run its cluster, `knows_users` where
    clients are asked who they are.
    """
    return resource.status.replaced(_common(resource, words, now, is_external=is_external, knows_users=knows_users))


def unreadable_status(unread: Unreadable, now: datetime) -> dict[str, Any]:
    """The status of a resource that cannot be understood: the reason, beside what its status said before."""
    before, words = part(unread.document, "status"), stalled("Invalid", unread.words)
    found = [condition for condition in before.get("conditions") or () if isinstance(condition, Mapping)]
    said = {(condition.get("type"), condition.get("message")) for condition in found}
    generation = int(part(unread.document, "metadata").get("generation", 0))  # 0: before any that is applied
    conditions = [condition.to_dict() for condition in dated(words, (), generation, now)]
    if said >= {(condition["type"], condition["message"]) for condition in conditions}:
        return before  # conditions of others may stand beside
    return {**before, "observedGeneration": generation, "conditions": conditions}


def quota_status(
    quota: ClientQuota, seen: SeenCluster, words: Sequence[Word], now: datetime, near: Neighbours | None = None
) -> ClientQuotaStatus:
    """The status of a quota. `near` finds the other quotas of the cluster, where many ask."""
    entity, near = entity_of(quota.spec.entity), near or Neighbours(seen.quotas)
    winners = shadowed_by(entity, near)
    words = [*words, *_shadow_words(near.limits.get(entity, {}), winners)]
    words += [] if seen.is_external else internal_words(quota, near.limits, knows_users=seen.knows_users)
    common = _common(quota, words, now, is_external=seen.is_external, knows_users=seen.knows_users)
    conflict = any(word.reason == "Conflict" for word in words)
    in_kafka = {} if conflict else dict(seen.quotas.get(entity, {}))
    target = {**target_values(quota, seen.brokers_to_be, now), **parts(quota, seen)}
    ours = {key: value for key, value in in_kafka.items() if key in target or key in quota.status.applied}
    applied = {key: value for key, value in ours.items() if math.isfinite(value)}  # JSON has no word for infinity
    foreign = {key: value for key, value in in_kafka.items() if key not in ours and math.isfinite(value)}
    override = active_override(quota, now)
    meant = as_meant(entity, target)
    usage = seen.usage.get(str(meant), ())
    return ClientQuotaStatus(
        **common,
        entity=entity_text(meant),
        level=level_of(entity),
        applied=applied,
        applied_time=quota.status.applied_time or (now if applied else None),
        unmanaged=foreign,
        last_correction=quota.status.last_correction,
        override=override.reason if override else None,
        shadowed_by=winners,
        shadows=shadows(entity, near),
        used=_percent(max((seen.used for seen in usage), default=None)),
        usage=tuple(map(_usage_line, usage)),
    )


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"


def _usage_line(seen: SeenUsage) -> BrokerUsage:
    return BrokerUsage(
        broker=seen.broker,
        producer_byte_rate=_rounded(seen.producer_byte_rate),
        consumer_byte_rate=_rounded(seen.consumer_byte_rate),
        throttled_seconds=int(seen.throttled_seconds),
        observed_seconds=None if seen.observed_seconds is None else int(seen.observed_seconds),
    )


def _rounded(rate: float) -> int:
    """The rate to two digits, so that the status does not change with every look."""
    return round(float(f"{rate:.1e}"))


def _shadow_words(own: Collection[str], winners: Sequence[RelatedQuota]) -> list[Word]:
    """The condition of a quota that no client meets, as other quotas always win."""
    always = [other for other in winners if other.clients == "All"]
    if not own or not set(own) <= {key for other in always for key in other.keys}:
        return []
    names = ", ".join(other.entity for other in always)
    return [Word("Shadowed", "True", "AnotherQuotaWins", f"has no effect on any client; {names} always wins")]


def _beginning(addresses: Sequence[str], most: int) -> str:
    """As many addresses as there is room for in `most` characters: any of them leads clients to all brokers."""
    text = ",".join(addresses)
    return text if len(text) <= most else text[: most + 1].rpartition(",")[0]


@dataclass(frozen=True, slots=True)
class PassResult:
    """The result of a reconciliation pass over the nodes of a cluster, which its status is computed from.

    `seen` and `survey` are None where no broker answered; `unmanaged` are quotas that no resource declares, `empty`
    the volumes that hold nothing any more, and `cordoned` the nodes that take no new replicas.
    """

    plan: ClusterPlan
    now: datetime
    seen: SeenCluster | None = None
    survey: Survey | None = None
    unmanaged: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    cordoned: Collection[int] = ()


def cluster_status(cluster: KafkaCluster, view: View, result: PassResult) -> KafkaClusterStatus:
    """The status of a cluster whose nodes are run here, by the view of them after the pass."""
    plan, seen, survey = result.plan, result.seen, result.survey
    firsts = first_ids(cluster.spec.node_pools, cluster.status.first_ids if view.pools is None else view.pools)
    lines = _node_lines(cluster, view, result)
    addresses = [line.address for line in lines if line.address and "broker" in line.roles]
    available_word, renewal = available(plan.words, seen, survey), _renewal_words(view.certificates)
    usage = volume_usage.words(lines, {node.id for node in view.wanted if node.is_ephemeral})
    return KafkaClusterStatus(
        **_common(cluster, [*plan.words, available_word, *usage, *renewal], result.now),
        bootstrap_servers=view.begin or _beginning(addresses, BOOTSTRAP_LENGTH_MAX) or None,
        listeners=_listener_lines(cluster, view.outside),
        certificates=_certificates(view.certificates),
        cluster_id=seen.cluster_id if seen else cluster.status.cluster_id,
        active_controller=survey.quorum.leader if survey else None,
        brokers=sum("broker" in line.roles for line in lines),
        ready_brokers=sum("broker" in line.roles and line.state == "Running" for line in lines),
        pools=tuple(PoolStatus(name=name, first_node_id=first) for name, first in firsts.items()),
        nodes=lines,
        rollout=plan.rollout,
        last_rollout=_last_rollout(cluster.status, plan, result.now),
        managed_config=managed_after(cluster, seen),
        empty_volumes=result.empty,
        analytics=view.analytics,
        unmanaged_quotas=result.unmanaged[:100],
    )


def _node_lines(cluster: KafkaCluster, view: View, result: PassResult) -> tuple[NodeStatus, ...]:
    """A line for each node, and for each that is gone and is still to hold something."""
    nodes = [*view.wanted, *view.leaving]
    if not nodes:
        return ()
    before = {line.id: line for line in cluster.status.nodes}
    lines = tuple(
        _node_line(
            node,
            view.seen.get(node.id),
            result.seen,
            view.places.get(node.id),
            before.get(node.id),
            result.cordoned,
        )
        for node in nodes
    )
    return lines + _lines_of_gone(cluster, {*view.seen, *(node.id for node in nodes)}, result.survey)


def _listener_lines(cluster: KafkaCluster, outside: Mapping[str, str]) -> tuple[ListenerStatus, ...]:
    """The addresses by listener, with the protocol of those that are not PLAINTEXT."""
    spoken = {listener.name: listener.protocol for listener in cluster.spec.listeners}
    return tuple(
        ListenerStatus(
            name=name,
            bootstrap_servers=_beginning(at.split(","), LISTENER_LENGTH_MAX),
            protocol=spoken[name] if spoken.get(name, PLAINTEXT) != PLAINTEXT else None,
        )
        for name, at in outside.items()
    )


def _certificates(seen: SeenCertificates | None) -> CertificatesStatus | None:
    if seen is None:
        return None
    return CertificatesStatus(authority_end_time=seen.authority_ends, first_end_time=seen.certificates_end)


def _renewal_words(seen: SeenCertificates | None) -> tuple[Word, ...]:
    """The condition while the authority of a secured cluster is renewed."""
    return () if seen is None else seen.words


def _lines_of_gone(cluster: KafkaCluster, here: Collection[int], survey: Survey | None) -> tuple[NodeStatus, ...]:
    """The lines of nodes of which nothing is left and that are still to hold something: so they are not forgotten."""
    known = {line.id: line for line in cluster.status.nodes}
    kept = [known[number] for number in gone(known, here, survey)]
    return tuple(NodeStatus(id=line.id, rack=line.rack, roles=line.roles, state="Stopped") for line in kept)


def available(words: Sequence[Word], seen: SeenCluster | None, survey: Survey | None) -> Word:
    """Whether clients can use the cluster, whatever else is under way."""
    if hidden := next((word for word in words if (word.type, word.status) == ("Ready", "Unknown")), None):
        return Word("Available", "Unknown", hidden.reason, hidden.message)
    if seen is None or survey is None:
        return Word("Available", "False", "NotAnswering", "no broker answers")
    if offline := [partition for partition in survey.partitions if partition.leader is None]:
        holders = sorted({number for partition in offline for number in partition.heirs or partition.replicas})
        away = [number for number in holders if number not in seen.brokers]
        rest = f"replicas on {named(away)} are away" if away else f"no replica there has all records; {GIVE_UP}"
        return Word("Available", "False", "Offline", f"no leader: {some([p.name for p in offline])}; {rest}")
    return Word("Available", "True", "Serving", "brokers answer, and every partition has a leader")


def external_status(
    cluster: KafkaCluster,
    seen: SeenCluster | None,
    survey: Survey | None,
    plan: ClusterPlan,
    now: datetime,
    unmanaged: tuple[str, ...] = (),
) -> KafkaClusterStatus:
    """The status of an external cluster: what Kafka tells of it. Which brokers are down it does not."""
    assert cluster.spec.external is not None, "it is asked for by `spec.external`"
    lines = tuple(
        NodeStatus(
            id=broker.id,
            rack=broker.rack,
            roles=("broker",),
            state="Running",
            address=broker.address,
            leaders=broker.leaders,
            under_replicated=broker.under_replicated,
        )
        for broker in (sorted(seen.brokers.values(), key=lambda broker: broker.id) if seen else ())
    )
    return KafkaClusterStatus(
        **_common(cluster, [*plan.words, _available_there(plan.words, seen, survey)], now, is_external=True),
        bootstrap_servers=cluster.spec.external.bootstrap_servers,
        cluster_id=seen.cluster_id if seen else cluster.status.cluster_id,
        active_controller=survey.quorum.leader if survey else None,
        brokers=len(lines) if seen else None,
        ready_brokers=len(lines) if seen else None,
        nodes=lines,
        unmanaged_quotas=unmanaged[:100],
    )


def _available_there(words: Sequence[Word], seen: SeenCluster | None, survey: Survey | None) -> Word:
    """Whether clients can use an external cluster; unknown where it tells its brokers and not its partitions."""
    if seen is None or survey is not None:
        return available(words, seen, survey)
    return Word(
        "Available", "Unknown", "NotSeen", "brokers answer; whether each partition has a leader they do not tell"
    )


def _last_rollout(before: KafkaClusterStatus, plan: ClusterPlan, now: datetime) -> LastRolloutStatus | None:
    """The roll that is over now, otherwise the one before."""
    over, is_ready = before.roll, any((word.type, word.status) == ("Ready", "True") for word in plan.words)
    if over is None or plan.rollout is not None or not is_ready or not (restarted := over.done + len(over.current)):
        return before.last_rollout
    return LastRolloutStatus(plan=over.plan, nodes=restarted, end_time=now)


def _node_line(
    node: WantedNode,
    seen: SeenNode | None,
    cluster: SeenCluster | None,
    place: tuple[str, str | None] | None,
    before: NodeStatus | None,
    cordoned: Collection[int],
) -> NodeStatus:
    broker = cluster.brokers.get(node.id) if cluster else None
    address, directory = place or (broker.address if broker else None, None)
    return NodeStatus(
        id=node.id,
        rack=node.rack,
        roles=node.roles,  # type: ignore[arg-type]
        state=seen.state if seen else "Stopped",
        address=address,
        leaders=broker.leaders if broker else None,
        under_replicated=broker.under_replicated if broker else None,
        restarts=seen.restarts if seen else None,
        volumes=volume_usage.lines(seen, before),
        cordoned=node.id in cordoned or None,
        directory=directory,
    )


def _common(
    resource: AnyResource,
    words: Sequence[Word],
    now: datetime,
    *,
    is_external: bool = False,
    knows_users: bool = False,
) -> dict[str, Any]:
    generation = resource.metadata.generation
    if not isinstance(resource, KafkaCluster):
        words = [_with_correction(word, told(resource.status.last_correction, now)) for word in words]
    return {
        "observed_generation": generation,
        "conditions": dated(
            [*words, *([] if is_external else _unserved_words(resource, knows_users=knows_users))],
            resource.status.conditions,
            generation,
            now,
        ),
    }


def _with_correction(word: Word, words: str) -> Word:
    """The word with the correction added, where it says that the resource is ready."""
    return replace(word, message=word.message + words) if (word.type, word.status) == ("Ready", "True") else word


def _unserved_words(resource: AnyResource, *, knows_users: bool) -> list[Word]:
    """The condition of settings that Kafka knows and that nothing in this version reads."""
    if isinstance(resource, ClientQuota):
        return [] if knows_users else _user_words(resource)
    if isinstance(resource, KafkaUser):
        return []
    is_cluster = isinstance(resource, KafkaCluster)
    idle = (without_effect if is_cluster else topic_without_effect)(resource.spec.config)
    if not idle:
        return []
    words = f"{some(sorted(idle))}: kept and described, and nothing in this version reads {_them(len(idle))}"
    return [Word("NotServed", "True", "WithoutEffect", words)]


def _user_words(quota: ClientQuota) -> list[Word]:
    """The condition of a quota of a user that no client can be, as no listener asks for one."""
    user = quota.spec.entity.user
    if user is None or user.name in {None, ANONYMOUS}:
        return []
    words = f'no client meets it: no listener of the cluster asks who a client is, so that each is user "{ANONYMOUS}"'
    return [Word("NotServed", "True", "NobodyIsThisUser", words)]


def _them(count: int) -> str:
    return "it" if count == 1 else "them"
