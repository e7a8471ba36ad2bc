"""The topic reconciler, read like sentences: what is wanted, what is there, what is done, what is said."""

from dataclasses import replace

import pytest

from kavka_operator.domain.observed import SeenBroker, SeenCluster, SeenTopic
from kavka_operator.domain.plan import AddPartitions, AlterTopic, CreateTopic, DeleteTopic, KafkaPlan, MoveReplicas
from kavka_operator.reconcile.topics import FORGET, managed_after, needs_records, reconcile, retire
from tests.unit.operator.fakes import DEFAULTS, topic

ONE_BROKER = SeenCluster("id", 0, {0: SeenBroker(0, "a:1")})
GONE = {"deletionTimestamp": "2026-11-21T12:00:00Z"}


def seen(partitions: int = 6, replicas: int = 1, *, records: int | None = None, **overrides: str) -> SeenTopic:
    dotted = {key.replace("_", "."): value for key, value in overrides.items()}
    return SeenTopic("orders", "id-1", partitions, replicas, dotted, {**DEFAULTS, **dotted}, records=records)


def said(plan: KafkaPlan) -> tuple[str, str]:
    """Reason and message of Ready; the other words must agree."""
    ready = plan.words[0]
    assert ready.type == "Ready"
    assert all((word.reason, word.message) == (ready.reason, ready.message) for word in plan.words)
    return ready.reason, ready.message


def test_a_topic_that_is_missing_is_created() -> None:
    plan = reconcile(topic(partitions=6, config={"retention.ms": 1000}), None, ONE_BROKER)
    assert plan.actions == (CreateTopic("orders", 6, None, {"retention.ms": "1000"}),)
    assert said(plan) == ("Creating", 'topic "orders" does not exist yet')


def test_a_converged_resource_needs_no_action() -> None:
    plan = reconcile(topic(partitions=6, config={"retention.ms": 1000}), seen(retention_ms="1000"), ONE_BROKER)
    assert plan.actions == ()
    assert said(plan) == ("Ready", "6 partitions with 1 replica")


def test_a_field_that_is_left_out_is_left_alone() -> None:
    assert not reconcile(topic(), seen(12, 3, retention_ms="5", cleanup_policy="compact"), ONE_BROKER).actions


def test_spellings_of_one_value_are_one_value() -> None:
    wanted = topic(config={"cleanup.policy": "compact, delete"})
    assert not reconcile(wanted, seen(cleanup_policy="compact,delete"), ONE_BROKER).actions


def test_a_topic_grows() -> None:
    assert reconcile(topic(partitions=8), seen(6), ONE_BROKER).actions == (AddPartitions("orders", 8),)


def test_a_topic_never_shrinks_and_its_settings_are_altered_all_the_same() -> None:
    plan = reconcile(topic(partitions=3, config={"segment.ms": 9}), seen(6), ONE_BROKER)
    assert plan.actions == (AlterTopic("orders", {"segment.ms": "9"}),)
    assert said(plan) == ("Refused", "the topic has 6 partitions and 3 are wanted; partitions may only grow")


def test_settings_taken_out_go_back_to_their_default_only_if_they_were_ours() -> None:
    wanted = topic(config={}, status={"managedConfig": ["retention.ms"]})
    plan = reconcile(wanted, seen(retention_ms="5", segment_ms="7"), ONE_BROKER)
    assert plan.actions == (AlterTopic("orders", {}, ("retention.ms",)),)
    assert managed_after(wanted, plan) == ()


def test_a_topic_waits_for_as_many_brokers_as_replicas() -> None:
    plan = reconcile(topic(replicationFactor=3), None, ONE_BROKER)
    assert (plan.actions, said(plan)) == ((), ("TooFewBrokers", "3 replicas need 3 brokers and there is 1"))


def test_topics_wait_for_brokers_that_are_to_come() -> None:
    coming = replace(ONE_BROKER, brokers_expected=3)
    for replicas in (None, 3):
        plan = reconcile(topic(replicationFactor=replicas), None, coming)
        assert plan.actions == ()
        assert said(plan)[1] == '1 of 3 brokers have joined; topic "orders" waits for the others'
    assert reconcile(topic(replicationFactor=1), None, coming).actions
    assert not reconcile(topic(replicationFactor=1), None, replace(coming, is_forming=True)).actions, (
        "it would lie on one"
    )
    assert said(reconcile(topic(replicationFactor=4), None, coming))[1] == "4 replicas need 4 brokers and there are 3"


def test_more_replicas_than_brokers_are_refused_and_nothing_moves() -> None:
    plan = reconcile(topic(replicationFactor=2), seen(replicas=1), ONE_BROKER)
    assert (plan.actions, said(plan)) == ((), ("Refused", "2 replicas need 2 brokers and there is 1"))


THREE_BROKERS = SeenCluster("id", 0, {n: SeenBroker(n, "a:1", rack) for n, rack in enumerate(("a", "b", "a"))})


def test_another_number_of_replicas_is_moved_to() -> None:
    there = replace(seen(2), assignment={0: (0,), 1: (1,)})
    plan = reconcile(topic(replicationFactor=2), there, THREE_BROKERS)
    assert plan.actions == (MoveReplicas("orders", 2, {0: (0, 1), 1: (1, 2)}),)
    assert said(plan) == ("Changing", 'give each partition of topic "orders" 2 replicas')
    moving = replace(there, replication_factor=2, assignment={0: (0, 1), 1: (1, 2)}, moving=(0, 1))
    plan = reconcile(topic(replicationFactor=2), moving, THREE_BROKERS)
    assert (plan.actions, said(plan)[1]) == ((), "replicas of orders-0, orders-1 are being copied to other brokers")
    assert not reconcile(topic(replicationFactor=3), moving, THREE_BROKERS).actions, "first things first"
    assert said(reconcile(topic(replicationFactor=2), replace(moving, moving=()), THREE_BROKERS))[0] == "Ready"


def test_the_older_resource_wins() -> None:
    plan = reconcile(topic("mine", topicName="orders"), seen(), ONE_BROKER, older=topic("theirs", topicName="orders"))
    assert plan.actions == ()
    assert said(plan) == ("Conflict", 'Topic "theirs" declares topic "orders" too and is older')


@pytest.mark.parametrize("there", [None, SeenTopic("orders", "id-2", 6, 1)])
def test_a_topic_that_somebody_deleted_is_not_created_again_without_a_word(there: SeenTopic | None) -> None:
    plan = reconcile(topic(partitions=8, status={"topicId": "id-1"}), there, ONE_BROKER)
    assert plan.actions == ()
    reason, message = said(plan)
    assert reason == ("Deleted" if there is None else "Replaced")
    assert f"{FORGET}=id-1" in message


@pytest.mark.parametrize("there", [None, SeenTopic("orders", "id-2", 6, 1)])
def test_a_loss_can_be_accepted_by_the_id_that_was_lost(there: SeenTopic | None) -> None:
    wanted = topic(partitions=8, metadata={"annotations": {FORGET: "id-1"}}, status={"topicId": "id-1"})
    (action,) = reconcile(wanted, there, ONE_BROKER).actions
    assert isinstance(action, CreateTopic if there is None else AddPartitions)


def test_an_acceptance_of_another_loss_is_none() -> None:
    wanted = topic(metadata={"annotations": {FORGET: "id-0"}}, status={"topicId": "id-1"})
    assert said(reconcile(wanted, None, ONE_BROKER))[0] == "Deleted"


def test_growth_of_a_compacted_topic_is_asked_for_by_name() -> None:
    compacted = seen(6, cleanup_policy="compact")
    refused = reconcile(topic(partitions=8), compacted, ONE_BROKER)
    assert (refused.actions, said(refused)[0]) == ((), "Refused")
    allowed = reconcile(topic(partitions=8, guards={"compactedGrowth": "Allow"}), compacted, ONE_BROKER)
    assert allowed.actions == (AddPartitions("orders", 8),)


@pytest.mark.parametrize(("key", "value"), [("retention.ms", 1000), ("retention.bytes", 1000)])
def test_a_retention_cut_that_may_delete_records_is_asked_for_by_name(key: str, value: int) -> None:
    wanted = topic(config={key: value, "segment.ms": 9})
    assert needs_records(wanted, seen())
    refused = reconcile(wanted, seen(records=1500), ONE_BROKER)
    assert refused.actions == (AlterTopic("orders", {"segment.ms": "9"}),)
    assert "may delete some of 1,500 records; set spec.guards.retentionCut: Allow" in said(refused)[1]
    assert reconcile(wanted, seen(records=0), ONE_BROKER).actions == (
        AlterTopic("orders", {key: str(value), "segment.ms": "9"}),
    )
    allowed = topic(config={key: value}, guards={"retentionCut": "Allow"})
    assert not needs_records(allowed, seen())
    assert reconcile(allowed, seen(records=1500), ONE_BROKER).actions == (AlterTopic("orders", {key: str(value)}),)


def test_longer_retention_needs_no_guard() -> None:
    wanted = topic(config={"retention.ms": -1})
    assert not needs_records(wanted, seen())
    assert reconcile(wanted, seen(), ONE_BROKER).actions == (AlterTopic("orders", {"retention.ms": "-1"}),)


def test_a_setting_that_kafka_does_not_know_is_refused() -> None:
    plan = reconcile(topic(config={"retenion.ms": 1}), seen(), ONE_BROKER)
    assert plan.actions == ()
    assert said(plan) == (
        "BadConfig",
        'spec.config.retenion.ms: is not a setting of a topic; did you mean "retention.ms"?',
    )


def test_a_topic_without_leaders_is_not_ready() -> None:
    there = SeenTopic("orders", "id-1", 6, 1, offline=2)
    assert said(reconcile(topic(), there, ONE_BROKER)) == ("Offline", "2 of 6 partitions have no leader")
    reason, words = said(reconcile(topic(), replace(there, offline_on=(0, 1)), ONE_BROKER))
    assert (reason, words.partition(": ")[0]) == (
        "Offline",
        "2 of 6 partitions have no leader; broker 1 with replicas of them is away",
    )
    _, words = said(reconcile(topic(), replace(there, offline_on=(0,)), ONE_BROKER))
    assert "no broker that runs is known to have all their records; delete the topic, or let" in words


@pytest.mark.parametrize(
    ("policy", "records", "goes"),
    [("Retain", 0, False), ("Delete", 5, True), ("DeleteIfEmpty", 5, False), ("DeleteIfEmpty", 0, True)],
)
def test_a_deleted_resource_takes_its_topic_along_as_its_policy_says(policy: str, records: int, goes: bool) -> None:
    gone = topic(deletionPolicy=policy, metadata=GONE, status={"topicId": "id-1"})
    assert needs_records(gone, seen()) == (policy == "DeleteIfEmpty")
    assert retire(gone, seen(records=records)).actions == ((DeleteTopic("orders", "id-1"),) if goes else ())


def test_only_the_topic_that_was_ours_is_deleted() -> None:
    assert not retire(topic(deletionPolicy="Delete", status={"topicId": "id-0"}), seen()).actions
    assert not retire(topic(deletionPolicy="Delete"), seen()).actions
    loser = topic("mine", topicName="orders", deletionPolicy="Delete", status={"topicId": "id-1"})
    assert not retire(loser, seen(), [topic("theirs", topicName="orders")]).actions


@pytest.mark.parametrize("policy", ["Retain", "Delete", "DeleteIfEmpty"])
def test_a_topic_that_another_resource_claims_passes_to_it(policy: str) -> None:
    gone = topic("mine", topicName="orders", deletionPolicy="Delete", status={"topicId": "id-1"})
    younger = topic("theirs", topicName="orders", deletionPolicy=policy)
    assert not retire(gone, seen(records=5), [younger]).actions


@pytest.mark.parametrize(
    ("policy", "records", "goes"),
    [("Retain", 0, False), ("Delete", 5, True), ("DeleteIfEmpty", 5, False), ("DeleteIfEmpty", 0, True)],
)
def test_of_resources_that_go_together_each_has_to_want_the_topic_gone(policy: str, records: int, goes: bool) -> None:
    gone = topic("mine", topicName="orders", deletionPolicy="Delete", status={"topicId": "id-1"}, metadata=GONE)
    other = topic("theirs", topicName="orders", deletionPolicy=policy, metadata=GONE)
    assert bool(retire(gone, seen(records=records), [other]).actions) == goes
