"""What is shown of a cluster that nobody runs: its status says what was seen last, and is no longer so.

`kavka up` notes its end, unless it is killed. So whoever shows a status asks first whether somebody keeps it up to
date.
"""

from datetime import datetime
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.resource import Condition

NO_LONGER_SEEN = ("activeController", "readyBrokers", "rollout")
NO_LONGER_SEEN_OF_A_NODE = ("leaders", "underReplicated")


def not_running(document: dict[str, Any], cluster: str, now: datetime) -> dict[str, Any]:
    """The document of a resource as it is shown while its cluster does not run."""
    status = document.get("status", {})
    if not status.get("conditions"):
        return document  # no look has written a status yet
    if document["kind"] == KafkaCluster.kind_name:
        nodes = [_stopped(node) for node in status.get("nodes", ()) if isinstance(node, dict)]
        kept = {key: value for key, value in status.items() if key not in NO_LONGER_SEEN}
        status = {**kept, "readyBrokers": 0, "nodes": nodes}
        words = "not running; start it with `kavka up`"
    else:
        words = f'KafkaCluster "{cluster}" is not running; this was seen last'
    return {**document, "status": {**status, "conditions": [_condition(status["conditions"], words, now)]}}


def _stopped(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in NO_LONGER_SEEN_OF_A_NODE} | {"state": "Stopped"}


def _condition(before: list[dict[str, Any]], words: str, now: datetime) -> dict[str, Any]:
    """The condition Ready with status Unknown; it keeps its time if Ready had the reason Stopped before."""
    ready = next((condition for condition in before if condition.get("type") == "Ready"), {})
    if ready.get("reason") == "Stopped":
        return ready
    moment = now.replace(microsecond=0)
    known = {"observed_generation": ready.get("observedGeneration")}
    return Condition(
        type="Ready", status="Unknown", reason="Stopped", message=words, last_transition_time=moment, **known
    ).to_dict()
