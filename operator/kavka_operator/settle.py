"""One look at a cluster and what follows from it: the shell around the pure reconcilers.

Look, reconcile every resource, carry out the actions, look again, until there is nothing left to do (`ROUNDS_MAX` at
most). The last look is also what the statuses are computed from, so a status never claims what was only asked for. One
request fetches all topics and one all quotas, however many resources there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kavka_operator.api.kinds import AnyResource
from kavka_operator.api.model import Resource
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.kafka.admin import Admin, AdminError
from kavka_operator.quota.entities import entity_of
from kavka_operator.reconcile import quotas, topics
from kavka_operator.reconcile.plan import KafkaAction, Plan, Word, reconciling, stalled
from kavka_operator.reconcile.seen import SeenCluster, SeenTopic, SeenUsage
from kavka_operator.reconcile.status import Status, quota_status, topic_status

ROUNDS_MAX = 4

Key = tuple[str, str, str]


@dataclass(slots=True)
class Outcome:
    """What became of it: a status for each resource, the deleted ones that are done with, and what was done."""

    cluster: SeenCluster
    statuses: dict[Key, Status] = field(default_factory=dict)
    released: list[Key] = field(default_factory=list)
    done: list[KafkaAction] = field(default_factory=list)


def key_of(resource: Resource) -> Key:
    """Kind, namespace, name."""
    return resource.kind_name, resource.metadata.namespace, resource.metadata.name


def settle(
    resources: Sequence[Topic | ClientQuota],
    admin: Admin,
    now: datetime,
    usage: Mapping[str, tuple[SeenUsage, ...]] | None = None,
    *,
    brokers_expected: int = 0,
    is_forming: bool = False,
) -> Outcome:
    """Bring the cluster to what the resources want, and say how it stands. Raises AdminError if it cannot be seen.

    `usage` is what the brokers' metrics tell, where somebody has read them; `brokers_expected` is how many brokers
    there will be once all of them have joined, where somebody knows; `is_forming` until that was so for the first time.
    """
    names = {each.topic_name for each in resources if isinstance(each, Topic)}
    failures: dict[Key, tuple[Word, ...]] = {}
    managed: dict[Key, Topic | ClientQuota] = {key_of(each): each for each in resources}
    done: list[KafkaAction] = []
    for _ in range(ROUNDS_MAX):
        look = replace(admin.look(names), brokers_expected=brokers_expected, is_forming=is_forming)
        seen = _count_records(managed.values(), look, admin)
        plans = plan_all(list(managed.values()), seen, now)
        open_plans = {key: plan for key, plan in plans.items() if plan.actions and key not in failures}
        if not open_plans:
            break
        for key, plan in open_plans.items():
            failure = _perform(plan, admin, done)
            if failure:
                failures[key] = failure
            else:
                managed[key] = _remember(managed[key], plan, seen, now)
    else:
        seen = admin.look(names)
        plans = plan_all(list(managed.values()), seen, now)
    return _outcome(managed, plans, failures, replace(seen, usage=usage or {}), done, now)


def plan_all(resources: Sequence[Topic | ClientQuota], seen: SeenCluster, now: datetime) -> dict[Key, Plan]:
    """A plan for each resource; the deleted ones come first, so that a name is free for who takes it over."""
    olders = _olders(resources)
    plans = {}
    for each in sorted(resources, key=lambda one: one.metadata.deletion_timestamp is None):
        older = olders.get(key_of(each))
        plans[key_of(each)] = (
            _plan_topic(each, seen, older) if isinstance(each, Topic) else _plan_quota(each, seen, older, now)
        )
    return plans


def _plan_topic(topic: Topic, seen: SeenCluster, older: AnyResource | None) -> Plan:
    assert older is None or isinstance(older, Topic)
    there = seen.topics.get(topic.topic_name)
    if topic.metadata.deletion_timestamp is not None:
        return topics.retire(topic, there, older)
    return topics.reconcile(topic, there, seen, older)


def _plan_quota(quota: ClientQuota, seen: SeenCluster, older: AnyResource | None, now: datetime) -> Plan:
    assert older is None or isinstance(older, ClientQuota)
    values = seen.quotas.get(entity_of(quota.spec.entity), {})
    if quota.metadata.deletion_timestamp is not None:
        return quotas.retire(quota, values, older)
    return quotas.reconcile(quota, values, len(seen.brokers), now, older)


def _olders(resources: Iterable[Topic | ClientQuota]) -> dict[Key, AnyResource]:
    """For each resource that claims what another has: that other."""
    owners: dict[object, Topic | ClientQuota] = {}
    olders: dict[Key, AnyResource] = {}
    for each in sorted(resources, key=lambda one: one.seniority):
        claim = each.topic_name if isinstance(each, Topic) else entity_of(each.spec.entity)
        owner = owners.setdefault(claim, each)
        if owner is not each:
            olders[key_of(each)] = owner
    return olders


def _count_records(resources: Iterable[Topic | ClientQuota], seen: SeenCluster, admin: Admin) -> SeenCluster:
    """`seen`, with the number of records where a decision hangs on it."""
    counted: dict[str, SeenTopic] = dict(seen.topics)
    for each in resources:
        if isinstance(each, Topic) and (there := counted.get(each.topic_name)) and topics.needs_records(each, there):
            counted[each.topic_name] = replace(there, records=admin.records(there.name))
    return replace(seen, topics=counted)


def _perform(plan: Plan, admin: Admin, done: list[KafkaAction]) -> tuple[Word, ...]:
    """Carry out a plan up to its first failure; the words for that failure, if there is one."""
    for action in plan.actions:
        try:
            admin.perform(action)  # type: ignore[arg-type]
        except AdminError as error:
            return reconciling("Failing", str(error)) if error.retriable else stalled("Rejected", str(error))
        done.append(action)  # type: ignore[arg-type]
    return ()


def _remember(resource: Topic | ClientQuota, plan: Plan, seen: SeenCluster, now: datetime) -> Topic | ClientQuota:
    """The resource with what the plan's actions make its own, for the next round."""
    if isinstance(resource, Topic):
        owned = topics.managed_after(resource, plan)
        return resource.model_copy(update={"status": resource.status.model_copy(update={"managed_config": owned})})
    target = quotas.target_values(resource, len(seen.brokers), now)
    update = {"applied": target, "applied_time": now}
    return resource.model_copy(update={"status": resource.status.model_copy(update=update)})


def _outcome(
    resources: Mapping[Key, Topic | ClientQuota],
    plans: Mapping[Key, Plan],
    failures: Mapping[Key, tuple[Word, ...]],
    seen: SeenCluster,
    done: list[KafkaAction],
    now: datetime,
) -> Outcome:
    outcome = Outcome(seen, done=done)
    for key, each in resources.items():
        words = failures.get(key, plans[key].words)
        if each.metadata.deletion_timestamp is not None and key not in failures:
            outcome.released.append(key)
        elif isinstance(each, Topic):
            outcome.statuses[key] = topic_status(each, seen.topics.get(each.topic_name), words, now)
        else:
            outcome.statuses[key] = quota_status(each, seen, words, now)
    return outcome
