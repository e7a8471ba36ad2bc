"""The view of a roll: how far it is, what it waits for, and the nodes."""

from datetime import UTC, datetime
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.api.stored_resources import resource_from
from kavka_operator.web_page.rolls import roll_view, unknown_roll

SINCE = datetime(2026, 11, 29, 22, 0, tzinfo=UTC)


def cluster(status: dict[str, Any]) -> KafkaCluster:
    spec = {"nodePools": [{"name": "nodes", "replicas": 2}]}
    metadata = {"name": "main", "namespace": "shop"}
    found = resource_from(
        {
            "apiVersion": "kavka.dev/v1alpha1",
            "kind": "KafkaCluster",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }
    )
    assert isinstance(found, KafkaCluster)
    return found


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    at = "2026-11-29T22:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def rows(shown: dict[str, Any], name: str) -> list[list[str]]:
    (sheet,) = [each for each in shown["sheets"] if each["name"] == name]
    return [[cell["text"] for cell in row["cells"]] for row in sheet["rows"]]


def facts(shown: dict[str, Any]) -> dict[str, str]:
    return {fact["name"]: fact["text"] for fact in shown["facts"]}


def test_a_roll_is_shown_with_what_it_waits_for_and_what_is_at_risk() -> None:
    roll = RolloutStatus(
        plan="abc", progress="1/3", done=1, total=3, current=(2,), blocked_by=("flights-0 is under-replicated",),
        blocked_since=SINCE, at_risk=("archive: 0",),
    )  # fmt: skip
    nodes = [
        {"id": 2, "state": "Restarting", "roles": ["broker"], "rack": "b"},
        {
            "id": 0,
            "state": "Running",
            "roles": ["broker", "controller"],
            "leaders": 4,
            "underReplicated": 1,
            "restarts": 2,
        },
    ]
    ready = condition("Ready", "False", "Rolling", "1 of 3 nodes restarted")
    shown = roll_view(
        cluster({"nodes": nodes, "rollout": roll.signed().to_dict(), "conditions": [ready]}), is_running=True
    )
    assert shown["roll"] == {"done": 1, "total": 3}
    assert facts(shown) == {
        "State": "Rolling", "Restarted": "1 of 3", "Now": "node 2", "Plan": "abc",
        "Waits since": "2026-11-29 22:00:00 UTC",
    }  # fmt: skip
    assert rows(shown, "waits") == [["flights-0 is under-replicated"], ["Rolling: 1 of 3 nodes restarted"]]
    assert rows(shown, "risks") == [["archive: 0"]]
    assert rows(shown, "nodes-of-roll") == [
        ["0", "Running", "", "broker, controller", "4", "1", "2"],
        ["2", "Restarting", "b", "broker", "unknown", "unknown", "0"],
    ]


def test_without_a_roll_the_last_one_is_told_and_nothing_waits() -> None:
    last = {"plan": "abc", "nodes": 3, "endTime": "2026-11-29T22:00:00Z"}
    ready = condition("Ready", "True", "Ready", "")
    shown = roll_view(cluster({"lastRollout": last, "conditions": [ready]}), is_running=True)
    assert facts(shown) == {
        "State": "Ready",
        "Roll": "none is on",
        "Last roll": "3 nodes, ended 2026-11-29 22:00:00 UTC",
    }
    assert shown["sheets"][0]["note"] == "It waits for nothing."
    assert shown["roll"] is None


def test_a_rollout_that_was_written_by_hand_is_not_shown_as_one() -> None:
    shown = roll_view(cluster({"rollout": {"done": 1, "total": 3, "blockedBy": ["me"]}}), is_running=False)
    assert (shown["roll"], rows(shown, "waits")) == (None, [])
    assert "does not run" in shown["sheets"][0]["note"]


def test_a_cluster_of_others_has_rolls_that_are_unknown_here() -> None:
    assert "unknown here" in unknown_roll()["sheets"][0]["note"]
