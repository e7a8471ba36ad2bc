"""Topics: known by name, with records that are counted where a plan would delete them, and replicas that move."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kavka_operator.api.kinds import Key, Managed, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.domain.observed import SeenCluster, SeenTopic
from kavka_operator.domain.plan import KafkaPlan, ManagedAction, Plan
from kavka_operator.loop.batched_actions import perform_in_batches
from kavka_operator.loop.kinds.claims import Claims, others, owner
from kavka_operator.loop.kinds.kind import Pass
from kavka_operator.quota.shadows import Neighbours
from kavka_operator.reconcile import reassignments, topics
from kavka_operator.reconcile.status import Status, topic_status


def claim(topic: Topic) -> object:
    """The name of the topic."""
    return topic.topic_name


def limits(topic: Topic) -> ClientQuota | None:
    """A topic brings no quota."""
    return None


def observe(resources: Sequence[Managed], seen: SeenCluster, run: Pass) -> SeenCluster:
    """`seen`, with the number of records of each topic whose plan depends on it."""
    counted: dict[str, SeenTopic] = dict(seen.topics)
    for resource in resources:
        there = counted.get(resource.topic_name) if isinstance(resource, Topic) else None
        if not isinstance(resource, Topic) or there is None or key_of(resource) in run.failures:
            continue
        with run.failures.over(resource):
            if topics.needs_records(resource, there):
                counted[resource.topic_name] = replace(there, records=run.admin.records(there.name))
    return replace(seen, topics=counted)


def plan(topic: Topic, seen: SeenCluster, claims: Claims, run: Pass) -> KafkaPlan:
    """The plan for one topic; one that an unreadable resource names too is not deleted."""
    rivals = [rival for rival in others(claim(topic), topic, claims) if isinstance(rival, Topic)]
    there = seen.topics.get(topic.topic_name)
    if topic.metadata.deletion_timestamp is not None:
        return Plan() if topic.topic_name in run.claimed else topics.retire(topic, there, rivals)
    return topics.reconcile(topic, there, seen, owner(topic, rivals))


def plan_together(
    resources: Sequence[Managed], plans: Mapping[Key, KafkaPlan], seen: SeenCluster, run: Pass
) -> tuple[SeenCluster, Mapping[Key, KafkaPlan]]:
    """The plans with the rate at which all moves of replicas together may copy. Raises AdminError."""
    pairs = [(topic, plans[key_of(topic)]) for topic in resources if isinstance(topic, Topic)]
    if not any(reassignments.needs_rates(topic, plan) for topic, plan in pairs):
        return seen, plans
    seen = replace(seen, rates=run.admin.rates(sorted(seen.brokers)))
    with_limits = reassignments.throttled(pairs, seen)
    return seen, {**plans, **{key_of(topic): plan for (topic, _), plan in zip(pairs, with_limits, strict=True)}}


def may_do(topic: Topic, plan: KafkaPlan) -> tuple[ManagedAction, ...]:
    """All actions; but a move of replicas first has to be in the status."""
    if reassignments.may_begin(topic, plan):
        return plan.actions
    return tuple(action for action in plan.actions if not isinstance(action, reassignments.STEPS))


perform = perform_in_batches


def remember(topic: Topic, plan: KafkaPlan, seen: SeenCluster, run: Pass) -> dict[str, object]:
    """The settings that the plan's actions make the resource's own."""
    return {"managed_config": topics.managed_after(topic, plan)}


def status(topic: Topic, plan: KafkaPlan, seen: SeenCluster, near: Neighbours, run: Pass) -> Status:
    """The status, with the move of replicas that is under way."""
    there, move = seen.topics.get(topic.topic_name), reassignments.noted(topic, plan, seen, run.now)
    return topic_status(topic, there, plan.words, run.now, move, is_external=seen.is_external)
