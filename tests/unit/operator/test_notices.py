"""What is said once of a resource: by an action that was done, or by the step from one status to the next."""

from datetime import timedelta
from typing import Any

import pytest

from kavka_operator.api.cluster_status import KafkaClusterStatus
from kavka_operator.api.quota import entity_of
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.domain.plan import (
    Action,
    AlterBrokers,
    AlterQuota,
    AlterTopic,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    LimitReplicas,
    RestartNode,
    stalled,
)
from kavka_operator.loop.converge import converge
from kavka_operator.loop.observation import Observation
from kavka_operator.reconcile.notices import OF_ACTION, Notice, invalid, notices
from kavka_operator.reconcile.status import with_words
from tests.unit.operator.fakes import NOW, FakeKafka, cluster, quota, topic

SOON = NOW + timedelta(minutes=1)
FIRST = {"plan": "abc", "progress": "0/2", "done": 0, "total": 2}
ORDERS = topic()


def rolls(before: dict[str, Any], after: dict[str, Any], *actions: Action) -> list[tuple[str, str]]:
    """The reasons and words of what is said of a cluster between two statuses."""
    status = KafkaClusterStatus.decode(before)
    roll = status.rollout.signed() if status.rollout is not None else None
    was = cluster().replaced({"status": status.replaced({"rollout": roll})})
    found = notices(was, KafkaClusterStatus.decode(after), actions)
    return [(notice.reason, notice.words) for notice in found]


def pending(reason: str) -> list[dict[str, Any]]:
    return [{"type": "RolloutPending", "status": "True", "reason": reason, "message": "", "lastTransitionTime": NOW}]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {},
            {"rollout": {**FIRST, "current": [0], "atRisk": ["orders: 0"]}},
            [("RollBegun", "roll abc: 2 nodes to restart; unavailable meanwhile: orders: 0")],
        ),
        ({"rollout": {**FIRST, "current": [0]}}, {"rollout": {**FIRST, "current": [0]}}, []),
        (
            {"rollout": {**FIRST, "current": [0]}},
            {"rollout": {**FIRST, "done": 1, "current": [1]}},
            [("NodeRestarted", "node 0 is back")],
        ),
        (
            {"rollout": {**FIRST, "done": 1, "current": [1]}},
            {"lastRollout": {"plan": "abc", "nodes": 2, "endTime": NOW}},
            [("NodeRestarted", "node 1 is back"), ("RollDone", "roll abc: 2 nodes restarted")],
        ),
        (
            {"rollout": {**FIRST, "current": [0]}},
            {"rollout": {**FIRST, "plan": "def"}},
            [],
        ),
        (
            {"rollout": {**FIRST, "done": 1, "current": []}},
            {"rollout": {**FIRST, "plan": "def", "current": [0]}},
            [("RollBegun", "roll def: 2 nodes to restart")],
        ),
    ],
    ids=["begun", "still down", "next node", "done", "wanted otherwise", "another roll"],
)
def test_a_roll_says_when_it_begins_when_each_node_is_back_and_when_it_is_done(
    before: dict[str, Any], after: dict[str, Any], said: list[tuple[str, str]]
) -> None:
    assert rolls(before, after) == said


BLOCKED = {**FIRST, "blockedBy": ["a: 2 of 3 in sync", "b: 1", "c: 1"], "blockedSince": NOW}


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        ({}, {"rollout": BLOCKED}, ["RollBlocked"]),
        ({"rollout": BLOCKED}, {"rollout": BLOCKED}, []),
        ({"rollout": BLOCKED}, {"rollout": {**BLOCKED, "blockedSince": SOON}}, ["RollBlocked"]),
        ({}, {"rollout": BLOCKED, "conditions": pending("RolloutHeld")}, ["RollWaits"]),
        ({"rollout": {**FIRST, "current": [0]}}, {"rollout": {**BLOCKED, "current": [0]}}, []),
        ({}, {"rollout": {**BLOCKED, "resumeTime": SOON}}, []),
    ],
    ids=["blocked", "still", "blocked again", "held", "a node is on its way", "a pause"],
)
def test_a_roll_says_once_what_it_waits_for(before: dict[str, Any], after: dict[str, Any], reasons: list[str]) -> None:
    assert [reason for reason, _ in rolls(before, after)] == reasons


def test_a_blocked_roll_is_a_warning_and_one_that_waits_for_a_person_is_none() -> None:
    (blocked,) = notices(cluster(), KafkaClusterStatus.decode({"rollout": BLOCKED}))
    assert blocked == Notice(
        "RollBlocked", "roll abc, 0/2 done, waits: a: 2 of 3 in sync; b: 1 and 1 more", is_warning=True
    )
    status = KafkaClusterStatus.decode({"rollout": BLOCKED, "conditions": pending("RolloutWaits")})
    assert [notice.is_warning for notice in notices(cluster(), status)] == [False]


def test_a_roll_that_has_begun_says_so_before_its_first_node_goes() -> None:
    after = {"rollout": {**FIRST, "current": [0]}}
    found = rolls({}, after, RestartNode(0, "num.partitions"), ElectLeaders((("orders", 0),)))
    assert [reason for reason, _ in found] == ["RollBegun", "NodeRestarting"]
    assert found[1][1] == "restart node 0: num.partitions"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (CreateTopic("orders", 3, 1, {}), "TopicCreated"),
        (DeleteTopic("orders", "id"), "TopicDeleted"),
        (AlterTopic("orders", {"retention.ms": "5"}), "TopicConfigured"),
        (LimitReplicas("orders", {}), ""),
    ],
)
def test_what_was_done_about_a_topic_is_said_in_the_action_s_words(action: Action, reason: str) -> None:
    said = notices(ORDERS, ORDERS.status, [action])
    assert said == ((Notice(reason, str(action)),) if reason else ())


def test_settings_of_all_brokers_are_said_of_the_cluster() -> None:
    action = AlterBrokers({"log.retention.ms": "5"})
    assert notices(cluster(), cluster().status, [action]) == (Notice("BrokersConfigured", str(action)),)
    assert OF_ACTION[AlterBrokers] == "BrokersConfigured"


def test_why_a_resource_waits_for_a_person_is_said_once_and_again_when_it_was_changed() -> None:
    refused = with_words(ORDERS, stalled("BadConfig", "no such setting"), NOW)
    assert notices(ORDERS, refused) == (Notice("BadConfig", "no such setting", is_warning=True),)
    again = ORDERS.replaced({"status": refused})
    assert notices(again, with_words(again, stalled("BadConfig", "no such setting, still"), SOON)) == ()
    assert notices(again, with_words(again, stalled("Conflict", "taken"), SOON))[0].reason == "Conflict"
    changed = again.replaced({"metadata": again.metadata.replaced({"generation": 2})})
    assert notices(changed, with_words(changed, stalled("BadConfig", "nor this"), SOON))[0].words == "nor this"
    assert invalid("spec.odd").is_warning


def test_what_somebody_else_changed_is_said_as_that_and_not_as_set() -> None:
    kafka = FakeKafka()
    wanted = topic("orders", partitions=1, config={"retention.ms": "1000"})
    first = converge(Observation([wanted], NOW), kafka)
    (before,) = first.statuses.values()
    known = wanted.replaced({"status": before})
    assert [notice.reason for notice in notices(wanted, before, first.done)] == ["TopicCreated"]
    kafka.perform(AlterTopic("orders", {"retention.ms": "5"}))
    second = converge(Observation([known], SOON), kafka)
    (after,) = second.statuses.values()
    assert notices(known, after, second.done) == (
        Notice("DriftCorrected", "changed by somebody else and put back: retention.ms was 5, is 1000 again"),
    )
    rested = known.replaced({"status": after})
    third = converge(Observation([rested], SOON), kafka)
    assert notices(rested, next(iter(third.statuses.values())), third.done) == ()


def test_the_parts_of_a_budget_move_silently_and_a_changed_budget_is_said() -> None:
    action = AlterQuota(entity_of(quota().spec.entity), {"producer_byte_rate": 5.0})
    budget = quota(scope="Cluster", status={"observedGeneration": 1})
    assert notices(budget, budget.status, [action]) == ()
    assert notices(quota(scope="Cluster"), budget.status, [action])[0].reason == "QuotaSet"
    limit = quota(status={"observedGeneration": 1})
    assert notices(limit, limit.status, [action])[0].reason == "QuotaSet", "an override begins"
    gone = quota(metadata={"deletionTimestamp": "2026-11-21T12:00:00Z"})
    assert notices(gone, gone.status, [action])[0].reason == "QuotaRemoved"


def test_what_was_done_is_known_by_resource() -> None:
    kafka = FakeKafka()
    outcome = converge(Observation([topic("a"), quota("b")], NOW), kafka)
    assert isinstance(outcome.cluster, SeenCluster)
    by_kind = {key[0]: [type(action) for action in done] for key, done in outcome.done_by_key().items()}
    assert by_kind == {"Topic": [CreateTopic], "ClientQuota": [AlterQuota]}
