"""One look at a cluster and what follows from it: the shell around the pure reconcilers.

Look, reconcile every resource, carry out the actions, look again, until there is nothing left to do (`ROUNDS_MAX` at
most). The last look is also what the statuses are computed from, so a status never claims what was only asked for. One
request fetches all topics and one all quotas, however many resources there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

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
Claimant = TypeVar("Claimant", Topic, ClientQuota)


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
    claims = claims_of(resources)
    plans = {}
    for each in sorted(resources, key=lambda one: one.metadata.deletion_timestamp is None):
        others = [other for other in claims[claim_of(each)] if other is not each]
        plans[key_of(each)] = (
            _plan_topic(each, seen, others) if isinstance(each, Topic) else _plan_quota(each, seen, others, now)
        )
    return plans


def _plan_topic(topic: Topic, seen: SeenCluster, others: Sequence[Topic | ClientQuota]) -> Plan:
    rivals = [each for each in others if isinstance(each, Topic)]
    there = seen.topics.get(topic.topic_name)
    if topic.metadata.deletion_timestamp is not None:
        return topics.retire(topic, there, rivals)
    return topics.reconcile(topic, there, seen, _owner(topic, rivals))


def _plan_quota(quota: ClientQuota, seen: SeenCluster, others: Sequence[Topic | ClientQuota], now: datetime) -> Plan:
    rivals = [each for each in others if isinstance(each, ClientQuota)]
    values, brokers = seen.quotas.get(entity_of(quota.spec.entity), {}), len(seen.brokers)
    if quota.metadata.deletion_timestamp is not None:
        heir = next((each for each in rivals if each.metadata.deletion_timestamp is None), None)
        return quotas.retire(quota, values, quotas.target_values(heir, brokers, now) if heir else {})
    return quotas.reconcile(quota, values, brokers, now, _owner(quota, rivals))


def claim_of(resource: Topic | ClientQuota) -> object:
    """What only one resource can have: the name of a topic, or an entity."""
    return resource.topic_name if isinstance(resource, Topic) else entity_of(resource.spec.entity)


def claims_of(resources: Iterable[Topic | ClientQuota]) -> dict[object, list[Topic | ClientQuota]]:
    """Who claims what, the oldest first."""
    claims: dict[object, list[Topic | ClientQuota]] = {}
    for each in sorted(resources, key=lambda one: one.seniority):
        claims.setdefault(claim_of(each), []).append(each)
    return claims


def _owner(resource: Claimant, rivals: Sequence[Claimant]) -> Claimant | None:
    """Who has what `resource` claims, if it is another: the oldest of those that stay. One that goes has no claim."""
    staying = [each for each in rivals if each.metadata.deletion_timestamp is None]
    return next((each for each in staying if each.seniority < resource.seniority), None)


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
