"""Look, reconcile, act, look again: with a Kafka in memory that counts what is written."""

from typing import TypeVar

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_operator.api.quota import ClientQuota, ClientQuotaStatus
from kavka_operator.api.topic import Topic, TopicStatus
from kavka_operator.kafka.admin import AdminError
from kavka_operator.settle import Outcome, key_of, settle
from tests.unit.operator.fakes import NOW, FakeKafka, quota, topic

GONE = {"deletionTimestamp": "2026-11-21T12:00:00Z"}


R = TypeVar("R", Topic, ClientQuota)


def after(resource: R, outcome: Outcome) -> R:
    """The resource with the status that it was given."""
    return resource.model_copy(update={"status": outcome.statuses[key_of(resource)]})


def ready(status: object) -> tuple[str, str]:
    assert isinstance(status, TopicStatus | ClientQuotaStatus)
    condition = status.condition("Ready")
    assert condition is not None
    return condition.status, condition.reason


def test_everything_is_made_and_then_at_rest() -> None:
    kafka = FakeKafka()
    wanted = [topic("a", partitions=3), topic("b", config={"retention.ms": 1000}), quota()]
    first = settle(wanted, kafka, NOW)
    assert [str(action) for action in first.done] == [
        'create topic "a"',
        'create topic "b"',
        "set producer_byte_rate=1Mi for client-id=etl",
    ]
    assert {ready(status) for status in first.statuses.values()} == {("True", "Ready")}
    writes = len(kafka.writes)
    second = settle([after(each, first) for each in wanted], kafka, NOW)
    assert (len(kafka.writes), second.done, second.statuses) == (writes, [], first.statuses)


def test_the_status_knows_the_topic_by_its_id() -> None:
    kafka = FakeKafka()
    wanted = topic("a")
    made = after(wanted, settle([wanted], kafka, NOW))
    assert made.status.topic_id == "id-1"
    kafka.make("a")
    outcome = settle([made], kafka, NOW)
    assert ready(outcome.statuses[key_of(made)]) == ("False", "Replaced")
    assert after(made, outcome).status.topic_id == "id-1"


def test_a_setting_removed_later_goes_back_to_its_default() -> None:
    kafka = FakeKafka()
    wanted = topic("a", config={"segment.ms": 5})
    made = after(wanted, settle([wanted], kafka, NOW))
    kafka.topics["a"] = kafka.topics["a"]
    bare = topic("a").model_copy(update={"status": made.status})
    outcome = settle([bare], kafka, NOW)
    assert kafka.topics["a"].overrides == {}
    assert after(bare, outcome).status.managed_config == ()


def test_two_resources_for_one_topic() -> None:
    kafka = FakeKafka()
    older = topic("older", topicName="t", partitions=2)
    younger = topic("younger", topicName="t", partitions=9, metadata={"creationTimestamp": "2026-11-02T00:00:00Z"})
    outcome = settle([younger, older], kafka, NOW)
    assert kafka.topics["t"].partitions == 2
    assert ready(outcome.statuses[key_of(younger)]) == ("False", "Conflict")
    assert ready(outcome.statuses[key_of(older)]) == ("True", "Ready")


@pytest.mark.parametrize(("retriable", "reason"), [(True, "Failing"), (False, "Rejected")])
def test_a_refusal_is_said_and_does_not_stop_the_others(retriable: bool, reason: str) -> None:
    class Picky(FakeKafka):
        def perform(self, action: object) -> None:
            if "bad" in str(action):
                raise AdminError("could not: no", retriable=retriable)
            super().perform(action)  # type: ignore[arg-type]

    kafka = Picky()
    bad, good = topic("bad"), topic("good")
    outcome = settle([bad, good], kafka, NOW)
    assert ready(outcome.statuses[key_of(bad)]) == ("False", reason)
    assert ready(outcome.statuses[key_of(good)]) == ("True", "Ready")


def test_what_cannot_be_seen_is_an_error() -> None:
    class Silent(FakeKafka):
        def look(self, topics: object) -> object:  # type: ignore[override]
            raise AdminError("could not look", retriable=True)

    with pytest.raises(AdminError):
        settle([topic()], Silent(), NOW)  # type: ignore[arg-type]


def test_deleting_does_what_the_policy_says_and_lets_go() -> None:
    kafka = FakeKafka()
    wanted = [topic("kept"), topic("gone", deletionPolicy="Delete"), quota()]
    made = [after(each, (first := settle(wanted, kafka, NOW))) for each in wanted]
    assert first.released == []
    kafka.held["gone"] = 100
    doomed = [
        each.model_copy(update={"metadata": each.metadata.model_copy(update={"deletion_timestamp": NOW})})
        for each in made
    ]
    outcome = settle(doomed, kafka, NOW)
    assert sorted(outcome.released) == sorted(key_of(each) for each in doomed)
    assert (list(kafka.topics), kafka.quotas) == (["kept"], {})


def test_a_quota_knows_its_level_and_what_hides_it() -> None:
    kafka = FakeKafka()
    kafka.quotas[Entity("alice")] = {"producer_byte_rate": 5.0}
    everybody = quota("everybody", {"user": {"default": True}})
    outcome = settle([quota(), everybody], kafka, NOW)
    status = outcome.statuses[key_of(quota())]
    assert isinstance(status, ClientQuotaStatus)
    assert (status.level, status.applied) == (7, {"producer_byte_rate": 1024.0**2})
    assert [(each.entity, each.clients) for each in status.shadowed_by] == [
        ("user=alice", "Some"),
        ("user=<default>", "All"),
    ]
    shadowed = status.condition("Shadowed")
    assert shadowed is not None
    assert shadowed.message == "has no effect on any client; user=<default> always wins"


def test_records_are_counted_only_where_it_matters() -> None:
    class Counting(FakeKafka):
        def records(self, topic: str) -> int:
            counted.append(topic)
            return 7

    counted: list[str] = []
    kafka = Counting()
    kafka.make("a")
    kafka.make("b")
    cut = topic("b", config={"retention.ms": 5})
    outcome = settle([topic("a", config={"segment.ms": 5}), cut], kafka, NOW)
    assert set(counted) == {"b"}
    assert ready(outcome.statuses[key_of(cut)]) == ("False", "Refused")
