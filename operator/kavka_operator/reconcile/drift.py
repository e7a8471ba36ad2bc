"""What somebody else has changed of a resource's own settings: it is put back, and the resource says so.

A setting is its own once it has set it. That it differs in Kafka from what was seen or wanted before, while the
resource is the same, is somebody else's doing. Of a topic that can be said only where the look before found it as it is
wanted now: while its cluster was away, or refused a change, its resource may have been changed too.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from kavka_operator.api.kinds import Managed
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.api.resource import MESSAGE_LENGTH_MAX, Correction
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser, entity_of_user
from kavka_operator.domain.access_rules import owned
from kavka_operator.domain.name_lists import some
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.domain.plan import AlterQuota, AlterTopic, CreateAcls, KafkaPlan, SetCredential
from kavka_operator.domain.quota_entities import limit_text

TOLD_FOR = timedelta(hours=1)
KEYS_TOLD_MAX = 20
VALUE_LENGTH_MAX = 100  # of a value in the words; one of a topic may have thousands of characters
AS_WANTED = ("Refused", "Offline", "Moving")
"""Reasons of a Ready that is False though the settings of the topic are as they are wanted."""


def correction(resource: Managed, plan: KafkaPlan, seen: SeenCluster, now: datetime) -> Correction | None:
    """The correction that `plan` makes; if it makes none, the correction before."""
    drifted = _drifted(resource, plan, seen)
    words = some(list(drifted), KEYS_TOLD_MAX, comma="; ")
    return Correction(time=now, message=words[:MESSAGE_LENGTH_MAX]) if words else resource.status.last_correction


def _drifted(resource: Managed, plan: KafkaPlan, seen: SeenCluster) -> Iterator[str]:
    match resource:
        case Topic():
            return _of_topic(resource, plan, seen)
        case ClientQuota():
            return _of_limits(entity_of(resource.spec.entity), resource.status.applied, plan, seen)
        case KafkaUser():
            return _of_user(resource, plan, seen)


def told(last: Correction | None, now: datetime) -> str:
    """The words for a correction, for an hour."""
    if last is None or now - last.time > TOLD_FOR:
        return ""
    return f"; changed by somebody else and put back at {last.time:%Y-%m-%dT%H:%M:%SZ}: {last.message}"


def _of_topic(topic: Topic, plan: KafkaPlan, seen: SeenCluster) -> Iterator[str]:
    there = seen.topics.get(topic.topic_name)
    if there is None or not _was_as_wanted(topic):
        return
    for action in plan.actions:
        if isinstance(action, AlterTopic):
            for key in sorted(action.set.keys() & set(topic.status.managed_config)):
                yield _put_back(key, there.overrides.get(key), action.set[key])


def _was_as_wanted(topic: Topic) -> bool:
    """Whether the settings were seen as this generation wants them."""
    ready, generation = topic.status.condition("Ready"), topic.metadata.generation
    if ready is None or generation != topic.status.observed_generation:
        return False
    return ready.status == "True" or ready.reason in AS_WANTED


def _put_back(key: str, was: str | None, now: str | None) -> str:
    """The words for a key that was changed from a value, and has another again; None is one that is not set."""
    return f"{key} was {_value(was)}, is {_value(now)} again"


def _value(text: str | None) -> str:
    if text is None:
        return "not set"
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."


def _of_user(user: KafkaUser, plan: KafkaPlan, seen: SeenCluster) -> Iterator[str]:
    """Access rules that were taken away, and a password that is another's or gone while its Secret is the same."""
    known = user.status.credential
    for action in plan.actions:
        match action:
            case CreateAcls(rules=rules):
                yield from (f"{rule} was gone, is there again" for rule in rules if rule in owned(user))
            case SetCredential(mechanism=mechanism, iterations=iterations) if known is not None:
                if (known.mechanism, known.iterations) == (mechanism, iterations):
                    there = (seen.access.credentials if seen.access else {}).get(user.user_name, {}).get(mechanism)
                    was = "was gone" if there is None else "was another"
                    yield from [f"the password for {mechanism} {was}, is that of the Secret again"] * (
                        there != iterations
                    )
            case _:
                pass
    yield from _of_limits(entity_of_user(user), user.status.quotas, plan, seen)


def _of_limits(entity: AnyEntity, known: Mapping[str, float], plan: KafkaPlan, seen: SeenCluster) -> Iterator[str]:
    there = seen.quotas.get(entity, {})
    for action in plan.actions:
        if isinstance(action, AlterQuota):
            for key in sorted({*action.set, *action.remove} & known.keys()):
                was = there.get(key)
                if was != known[key]:
                    now = action.set.get(key)
                    yield _put_back(key, *(None if value is None else limit_text(key, value) for value in (was, now)))
