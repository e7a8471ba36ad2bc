"""Look, reconcile, act, look again: with a Kafka in memory that counts what is written."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_operator.api.kinds import key_of
from kavka_operator.api.quota import ClientQuota, ClientQuotaStatus, Limits
from kavka_operator.api.topic import Topic, TopicStatus
from kavka_operator.domain.plan import AlterTopic, CreateTopic, KafkaAction, KafkaPlan, Plan, dated
from kavka_operator.domain.plan import ready as well
from kavka_operator.kafka.admin import AdminError
from kavka_operator.loop.converge import Outcome, converge
from kavka_operator.loop.observation import Observation
from kavka_operator.reconcile.drift import KEYS_TOLD_MAX, VALUE_LENGTH_MAX, correction
from tests.unit.operator.fakes import NOW, FakeKafka, quota, topic

GONE = {"deletionTimestamp": "2026-11-21T12:00:00Z"}


R = TypeVar("R", Topic, ClientQuota, Topic | ClientQuota)


def after(resource: R, outcome: Outcome) -> R:
    """The resource with the status that it was given."""
    return resource.replaced({"status": outcome.statuses[key_of(resource)]})


def deleted(resource: R) -> R:
    """The resource as it is once somebody has asked for its deletion."""
    return resource.replaced({"metadata": resource.metadata.replaced({"deletion_timestamp": NOW})})


def ready(status: object) -> tuple[str, str]:
    assert isinstance(status, TopicStatus | ClientQuotaStatus)
    condition = status.condition("Ready")
    assert condition is not None
    return condition.status, condition.reason


def test_everything_is_made_and_then_at_rest() -> None:
    kafka = FakeKafka()
    wanted: list[Topic | ClientQuota] = [topic("a", partitions=3), topic("b", config={"retention.ms": 1000}), quota()]
    first = converge(Observation(wanted, NOW), kafka)
    assert [str(action) for action in first.done] == [
        'create topic "a"',
        'create topic "b"',
        "set producer_byte_rate=1Mi for client-id=etl",
    ]
    assert {ready(status) for status in first.statuses.values()} == {("True", "Ready")}
    writes = len(kafka.writes)
    second = converge(Observation([after(each, first) for each in wanted], NOW), kafka)
    assert (len(kafka.writes), second.done, second.statuses) == (writes, [], first.statuses)


def test_the_status_knows_the_topic_by_its_id() -> None:
    kafka = FakeKafka()
    wanted = topic("a")
    made = after(wanted, converge(Observation([wanted], NOW), kafka))
    assert made.status.topic_id == "id-1"
    kafka.make("a")
    outcome = converge(Observation([made], NOW), kafka)
    assert ready(outcome.statuses[key_of(made)]) == ("False", "Replaced")
    assert after(made, outcome).status.topic_id == "id-1"


def test_a_setting_removed_later_goes_back_to_its_default() -> None:
    kafka = FakeKafka()
    wanted = topic("a", config={"segment.ms": 5})
    made = after(wanted, converge(Observation([wanted], NOW), kafka))
    kafka.topics["a"] = kafka.topics["a"]
    bare = topic("a").replaced({"status": made.status})
    outcome = converge(Observation([bare], NOW), kafka)
    assert kafka.topics["a"].overrides == {}
    assert after(bare, outcome).status.managed_config == ()


def test_two_resources_for_one_topic() -> None:
    kafka = FakeKafka()
    older = topic("older", topicName="t", partitions=2)
    younger = topic("younger", topicName="t", partitions=9, metadata={"creationTimestamp": "2026-11-02T00:00:00Z"})
    outcome = converge(Observation([younger, older], NOW), kafka)
    assert kafka.topics["t"].partitions == 2
    assert ready(outcome.statuses[key_of(younger)]) == ("False", "Conflict")
    assert ready(outcome.statuses[key_of(older)]) == ("True", "Ready")


def test_a_topic_passes_to_the_other_resource_that_declares_it_when_its_owner_is_deleted() -> None:
    kafka = FakeKafka()
    owner = topic("owner", topicName="t", deletionPolicy="Delete")
    heir = topic("heir", topicName="t", metadata={"creationTimestamp": "2026-11-02T00:00:00Z"})
    first = converge(Observation([owner, heir], NOW), kafka)
    owner, heir = after(owner, first), after(heir, first)
    kafka.held["t"] = 100
    outcome = converge(Observation([deleted(owner), heir], NOW), kafka)
    assert (outcome.released, outcome.done) == ([key_of(owner)], []), "nothing is deleted, nothing made again"
    assert (list(kafka.topics), kafka.topics["t"].topic_id) == (["t"], "id-1")
    assert ready(outcome.statuses[key_of(heir)]) == ("True", "Ready"), "at the same look, not at the next one"
    assert after(heir, outcome).status.topic_id == "id-1"
    assert converge(Observation([deleted(after(heir, outcome))], NOW), kafka).done == [], "and the heir wants it kept"


def test_what_the_heir_wants_counts_even_if_it_changed_its_mind_while_it_waited() -> None:
    kafka = FakeKafka()
    owner = topic("owner", topicName="t", deletionPolicy="Delete")
    younger = {"creationTimestamp": "2026-11-02T00:00:00Z"}
    heir = topic("heir", topicName="t", deletionPolicy="Delete", metadata=younger)
    first = converge(Observation([owner, heir], NOW), kafka)
    owner, heir = after(owner, first), after(heir, first)
    kept = topic("heir", topicName="t", metadata=younger).replaced({"status": heir.status})
    assert converge(Observation([deleted(owner), deleted(kept)], NOW), kafka).done == []
    assert [str(each) for each in converge(Observation([deleted(owner), deleted(heir)], NOW), kafka).done] == [
        'delete topic "t"'
    ]


def test_a_limit_passes_to_the_other_resource_that_declares_it_and_is_never_away() -> None:
    kafka = FakeKafka()
    owner = quota("owner", limits={"producerByteRate": 5, "consumerByteRate": 7})
    heir = quota("heir", limits={"producerByteRate": 9}, metadata={"creationTimestamp": "2026-11-02T00:00:00Z"})
    first = converge(Observation([owner, heir], NOW), kafka)
    owner, heir = after(owner, first), after(heir, first)
    assert kafka.quotas == {Entity(client_id="etl"): {"producer_byte_rate": 5.0, "consumer_byte_rate": 7.0}}
    outcome = converge(Observation([deleted(owner), heir], NOW), kafka)
    assert [str(each) for each in outcome.done] == [
        "set no consumer_byte_rate for client-id=etl",
        "set producer_byte_rate=9 for client-id=etl",
    ]
    assert ready(outcome.statuses[key_of(heir)]) == ("True", "Ready")


@pytest.mark.parametrize(("retriable", "reason"), [(True, "Failing"), (False, "Rejected")])
def test_a_refusal_is_said_and_does_not_stop_the_others(retriable: bool, reason: str) -> None:
    class Picky(FakeKafka):
        def perform(self, action: object) -> None:
            if "bad" in str(action):
                raise AdminError("could not: no", retriable=retriable)
            super().perform(action)  # type: ignore[arg-type]

    kafka = Picky()
    bad, good = topic("bad"), topic("good")
    outcome = converge(Observation([bad, good], NOW), kafka)
    assert ready(outcome.statuses[key_of(bad)]) == ("False", reason)
    assert ready(outcome.statuses[key_of(good)]) == ("True", "Ready")


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    class Silent(FakeKafka):
        def look(self, topics: object) -> object:  # type: ignore[override]
            raise AdminError("could not look", retriable=True)

    with pytest.raises(AdminError):
        converge(Observation([topic()], NOW), Silent())  # type: ignore[arg-type]


def test_deleting_does_what_the_policy_says_and_lets_go() -> None:
    kafka = FakeKafka()
    wanted: list[Topic | ClientQuota] = [topic("kept"), topic("gone", deletionPolicy="Delete"), quota()]
    made = [after(each, (first := converge(Observation(wanted, NOW), kafka))) for each in wanted]
    assert first.released == []
    kafka.held["gone"] = 100
    doomed = [deleted(each) for each in made]
    outcome = converge(Observation(doomed, NOW), kafka)
    assert sorted(outcome.released) == sorted(key_of(each) for each in doomed)
    assert (list(kafka.topics), kafka.quotas) == (["kept"], {})


def test_a_quota_knows_its_level_and_what_hides_it() -> None:
    kafka = FakeKafka()
    kafka.quotas[Entity("alice")] = {"producer_byte_rate": 5.0}
    everybody = quota("everybody", {"user": {"default": True}})
    outcome = converge(Observation([quota(), everybody], NOW), kafka)
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


def test_a_quota_of_a_user_that_no_client_can_be_says_so() -> None:
    kafka = FakeKafka()
    named, anonymous = quota("a", {"user": {"name": "alice"}}), quota("b", {"user": {"name": "ANONYMOUS"}})
    everybody = quota("c", {"user": {"default": True}})
    statuses = converge(Observation([named, anonymous, everybody], NOW), kafka).statuses
    told = [statuses[key_of(each)].condition("NotServed") for each in (named, anonymous, everybody)]
    assert told[0] is not None
    assert (told[0].reason, told[1:]) == ("NobodyIsThisUser", [None, None])


def test_a_broker_that_is_down_does_not_change_the_share_of_the_others() -> None:
    kafka = FakeKafka(brokers=3)
    wanted = quota(limits={"producerByteRate": "10Mi"}, scope="Cluster")
    outcome = converge(Observation([wanted], NOW, brokers_expected=3), kafka)
    assert kafka.quotas[Entity(client_id="etl")]["producer_byte_rate"] == 3495253.0
    del kafka.brokers[2]
    assert converge(Observation([after(wanted, outcome)], NOW, brokers_expected=3), kafka).done == []


def test_thousands_of_resources_take_few_requests() -> None:
    class Counting(FakeKafka):
        def perform(self, action: object) -> None:
            raise AssertionError("one by one")

        def perform_many(self, actions: Sequence[KafkaAction]) -> list[AdminError | None]:
            batches.append(len(actions))
            for action in actions:
                super().perform(action)
            return [None] * len(actions)

    batches: list[int] = []
    kafka = Counting()
    wanted: list[Topic | ClientQuota] = [
        *(topic(f"t{number}") for number in range(500)),
        *(quota(f"q{number}", {"user": {"name": f"u{number}"}}) for number in range(500)),
    ]
    outcome = converge(Observation(wanted, NOW), kafka)
    assert batches == [200, 200, 100] * 2
    assert {ready(status) for status in outcome.statuses.values()} == {("True", "Ready")}


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
    outcome = converge(Observation([topic("a", config={"segment.ms": 5}), cut], NOW), kafka)
    assert set(counted) == {"b"}
    assert ready(outcome.statuses[key_of(cut)]) == ("False", "Refused")


def test_a_topic_says_which_of_its_settings_change_nothing() -> None:
    wanted = topic(config={"preallocate": "true", "retention.ms": "5"})
    status = converge(Observation([wanted], NOW), FakeKafka()).statuses[key_of(wanted)]
    word = status.condition("NotServed")
    assert word is not None
    assert (word.status, word.reason) == ("True", "WithoutEffect")
    assert word.message.startswith("preallocate: ")
    plain = topic(config={"retention.ms": "5"})
    assert converge(Observation([plain], NOW), FakeKafka()).statuses[key_of(plain)].condition("NotServed") is None


def message_of(status: object) -> str:
    assert isinstance(status, TopicStatus | ClientQuotaStatus)
    condition = status.condition("Ready")
    assert condition is not None
    return condition.message


def test_a_change_by_somebody_else_is_put_back_and_told() -> None:
    kafka, etl = FakeKafka(), Entity(client_id="etl")
    wanted: list[Topic | ClientQuota] = [topic("a", config={"retention.ms": 1000}), quota()]
    made = [after(each, converge(Observation(wanted, NOW), kafka)) for each in wanted]
    kafka.quotas[etl] = {"producer_byte_rate": 5000.0}
    kafka.perform(AlterTopic("a", {"retention.ms": "77"}))

    outcome = converge(Observation(made, NOW), kafka)

    assert kafka.quotas[etl] == {"producer_byte_rate": 1048576.0}
    by_topic, by_quota = (outcome.statuses[key_of(each)] for each in made)
    assert message_of(by_topic).endswith("put back at 2026-11-21T12:00:00Z: retention.ms was 77, is 1000 again")
    assert message_of(by_quota).endswith("put back at 2026-11-21T12:00:00Z: producer_byte_rate was 5k, is 1Mi again")
    later = converge(Observation([after(each, outcome) for each in made], NOW + timedelta(minutes=61)), kafka)
    assert "put back" not in message_of(later.statuses[key_of(made[0])])
    assert isinstance(by_quota, ClientQuotaStatus)
    assert later.statuses[key_of(made[1])].last_correction == by_quota.last_correction  # type: ignore[union-attr]


def test_very_much_that_was_put_back_is_told_shortly() -> None:
    kafka, names = FakeKafka(), [f"odd.{number}" for number in range(KEYS_TOLD_MAX + 5)]
    made = topic("a", config=dict.fromkeys(names, "1"))
    made = made.replaced({"metadata": made.metadata.replaced({"generation": 2})})
    seen = made.status.replaced(
        {"managed_config": tuple(names), "observed_generation": 2, "conditions": dated(well(""), (), 2, NOW)}
    )
    spoilt = dict.fromkeys(names, "x" * 4000)
    kafka.perform(CreateTopic("a", 1, 1, spoilt))
    plan: KafkaPlan = Plan((AlterTopic("a", dict.fromkeys(names, "1")),))

    told = correction(made.replaced({"status": seen}), plan, kafka.look(("a",)), NOW)

    assert told is not None
    assert told.message.endswith(" and 5 more")
    assert len(told.message) < KEYS_TOLD_MAX * (2 * VALUE_LENGTH_MAX)


def test_what_the_resource_itself_changes_is_no_correction() -> None:
    kafka = FakeKafka()
    wanted: list[Topic | ClientQuota] = [topic("a", config={"retention.ms": 1000}), quota()]
    made = [after(each, converge(Observation(wanted, NOW), kafka)) for each in wanted]
    limits = made[1].spec.replaced({"limits": Limits(producer_byte_rate=7)})
    spec = made[0].spec.replaced({"config": {"retention.ms": "2000"}})
    newer = [
        each.replaced({"spec": other, "metadata": each.metadata.replaced({"generation": 2})})
        for each, other in zip(made, (spec, limits), strict=True)
    ]

    outcome = converge(Observation(newer, NOW), kafka)

    assert len(outcome.done) == 2
    assert [status.last_correction for status in outcome.statuses.values()] == [None, None]  # type: ignore[union-attr]


def test_settings_that_others_have_made_are_shown_and_stay() -> None:
    kafka, etl = FakeKafka(), Entity(client_id="etl")
    wanted: list[Topic | ClientQuota] = [topic("a", config={"retention.ms": 1000}), quota()]
    made = [after(each, converge(Observation(wanted, NOW), kafka)) for each in wanted]
    kafka.quotas[etl]["consumer_byte_rate"] = 5000.0
    kafka.perform(AlterTopic("a", {"segment.bytes": "1048576"}))

    outcome = converge(Observation(made, NOW), kafka)

    by_topic, by_quota = (outcome.statuses[key_of(each)] for each in made)
    assert isinstance(by_topic, TopicStatus)
    assert isinstance(by_quota, ClientQuotaStatus)
    assert (by_topic.unmanaged_config, by_quota.unmanaged) == (("segment.bytes=1048576",), {"consumer_byte_rate": 5000})
    assert by_quota.applied == {"producer_byte_rate": 1048576}
    assert outcome.done == []
