"""What somebody else has changed of a resource's own settings: it is put back, and the resource says so.

A setting is its own once it has set it. That it differs in Kafka from what was seen or wanted before, while the
resource is the same, is somebody else's doing.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import ClientQuota, entity_of
from kavka_operator.api.resource import MESSAGE_LENGTH_MAX, Correction
from kavka_operator.api.topic import Topic
from kavka_operator.domain.plan import AlterQuota, AlterTopic, KafkaPlan
from kavka_operator.domain.seen import SeenCluster

TOLD_FOR = timedelta(hours=1)


def correction(resource: Topic | ClientQuota, plan: KafkaPlan, seen: SeenCluster, now: datetime) -> Correction | None:
    """The correction that `plan` makes; if it makes none, the correction before."""
    drifted = _of_topic(resource, plan, seen) if isinstance(resource, Topic) else _of_quota(resource, plan, seen)
    words = ", ".join(drifted)
    return Correction(time=now, message=words[:MESSAGE_LENGTH_MAX]) if words else resource.status.last_correction


def told(last: Correction | None, now: datetime) -> str:
    """The words for a correction, for an hour."""
    if last is None or now - last.time > TOLD_FOR:
        return ""
    return f"; changed by somebody else and put back at {last.time:%Y-%m-%dT%H:%M:%SZ}: {last.message}"


def _of_topic(topic: Topic, plan: KafkaPlan, seen: SeenCluster) -> Iterator[str]:
    there = seen.topics.get(topic.topic_name)
    if there is None or topic.metadata.generation != topic.status.observed_generation:
        return
    for action in plan.actions:
        if isinstance(action, AlterTopic):
            for key in sorted(action.set.keys() & set(topic.status.managed_config)):
                was = there.overrides.get(key)
                yield f"{key} was {'not set' if was is None else was}"


def _of_quota(quota: ClientQuota, plan: KafkaPlan, seen: SeenCluster) -> Iterator[str]:
    there, known = seen.quotas.get(entity_of(quota.spec.entity), {}), quota.status.applied
    for action in plan.actions:
        if isinstance(action, AlterQuota):
            for key in sorted({*action.set, *action.remove} & known.keys()):
                was = there.get(key)
                if was != known[key]:
                    yield f"{key} was {'not set' if was is None else spell(was)}"
