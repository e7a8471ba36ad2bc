"""What the console shows, as JSON: read from the resources and the statuses that were last written. Pure.

Nothing of a spec is told but names and limits, so that no setting, which may hold a password, comes on the page. All
lists have bounds, what matters most comes first, and what was left out is counted. A status may have been written by
hand, or by another version: what is not of its type is left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import Any

from kavka_operator.api.audit import ANSWERS_MAX
from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey, cluster_of, key_of_document

CLUSTERS_MAX = 100
NODES_MAX = 200
"""Of a cluster."""
TOPICS_MAX = 500
QUOTAS_MAX = 500
LINES_MAX = 10
"""Of what a roll waits for, and of what will be unavailable meanwhile."""
WORDS_LENGTH_MAX = 500
NOT_SEEN = "NotSeen"

Document = Mapping[str, Any]
Row = dict[str, Any]


def overview(documents: Iterable[Document]) -> Row:
    """Clusters, topics that need a look, and the quotas that are used most."""
    known: dict[str, list[Document]] = {"KafkaCluster": [], "Topic": [], "ClientQuota": []}
    for document in documents:
        known.get(key_of_document(document)[0], []).append(document)
    counted = {kind: Counter(map(cluster_of, found)) for kind, found in known.items()}
    clusters, topics, quotas = known["KafkaCluster"], known["Topic"], known["ClientQuota"]
    return {
        "clusters": [_cluster(item, counted) for item in nsmallest(CLUSTERS_MAX, clusters, key=key_of_document)],
        "clustersOmitted": max(0, len(clusters) - CLUSTERS_MAX),
        "topics": [_topic(item) for item in nsmallest(TOPICS_MAX, topics, key=_by_need)],
        "topicsOmitted": max(0, len(topics) - TOPICS_MAX),
        "quotas": [_quota(item) for item in nsmallest(QUOTAS_MAX, quotas, key=_by_use)],
        "quotasOmitted": max(0, len(quotas) - QUOTAS_MAX),
    }


def _by_need(topic: Document) -> tuple[Any, ...]:
    """Topics without leaders first, then those with too few replicas, then those that are not Ready."""
    status = part(topic, "status")
    lacking = -_number(status, "offline"), -_number(status, "underReplicated")
    return *lacking, _is_ready(status), key_of_document(topic)


def _by_use(quota: Document) -> tuple[Any, ...]:
    """Quotas that are nearest to their limit first, then those that held clients back for longest."""
    status = part(quota, "status")
    return -_percent(status), -_throttled(status), _is_ready(status), key_of_document(quota)


def _is_ready(status: Document) -> bool:
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in _maps(status, "conditions"))


def _percent(status: Document) -> int:
    """Per cent of its limit that a quota uses; -1 where that was not seen."""
    used = _text(status, "used")[:-1]
    return int(used) if used.isdecimal() else -1


def _throttled(status: Document) -> int:
    return sum(_number(line, "throttledSeconds") for line in _maps(status, "usage"))


def _cluster(document: Document, counted: Mapping[str, Counter[ClusterKey]]) -> Row:
    status, key = part(document, "status"), cluster_of(document)
    nodes = [_node(item) for item in _maps(status, "nodes")]
    return {
        **_common(document),
        "available": _condition(document, "Available"),
        "clusterId": _text(status, "clusterId"),
        "brokers": _number(status, "brokers"),
        "readyBrokers": _number(status, "readyBrokers"),
        "partitions": sum(node["leaders"] for node in nodes),
        "underReplicated": sum(node["underReplicated"] for node in nodes),
        "racks": _racks(nodes[:NODES_MAX]),
        "nodesOmitted": max(0, len(nodes) - NODES_MAX),
        "roll": _roll(part(status, "rollout")),
        "audit": _audit(part(status, "analytics")),
        "topics": counted["Topic"][key],
        "quotas": counted["ClientQuota"][key],
    }


def _node(line: Document) -> Row:
    return {
        "id": _number(line, "id"),
        "rack": _text(line, "rack"),
        "roles": [str(role) for role in _list(line, "roles")][:2],
        "state": _text(line, "state"),
        "leaders": _number(line, "leaders"),
        "underReplicated": _number(line, "underReplicated"),
        "restarts": _number(line, "restarts"),
    }


def _racks(nodes: Iterable[Row]) -> list[Row]:
    """The nodes by their racks, in the order of their names; those without one come last."""
    racks: dict[str, list[Row]] = {}
    for node in sorted(nodes, key=lambda node: node["id"]):
        racks.setdefault(node["rack"], []).append(node)
    return [{"rack": rack, "nodes": racks[rack]} for rack in sorted(racks, key=lambda rack: (not rack, rack))]


def _roll(rollout: Document) -> Row | None:
    """The row that shows the progress of a roll; None without one."""
    total = _number(rollout, "total")
    if not total:
        return None
    return {
        "plan": _text(rollout, "plan"),
        "done": _number(rollout, "done"),
        "total": total,
        "current": [node for node in _list(rollout, "current") if isinstance(node, int)][:NODES_MAX],
        "blockedBy": _lines(rollout, "blockedBy"),
        "blockedSince": _text(rollout, "blockedSince"),
        "atRisk": _lines(rollout, "atRisk"),
    }


def _audit(analytics: Document) -> Row | None:
    """The row that shows the newest run over the audit trail; None where none is wanted."""
    if not (state := _text(analytics, "state")):
        return None
    told, summary = ("startTime", "successTime", "message"), part(analytics, "summary")
    answers = [
        {"question": _text(line, "question"), "weight": _text(line, "weight"), "rows": _number(line, "rows")}
        for line in _maps(summary, "answers")
    ]
    return {
        "state": state,
        **{name: _text(analytics, name) for name in told},
        "answers": answers[:ANSWERS_MAX],
        "chains": _text(summary, "chains"),
        "summaryTime": _text(summary, "time"),
    }


def _topic(document: Document) -> Row:
    status = part(document, "status")
    move = part(status, "move")
    return {
        **_common(document),
        "cluster": "/".join(cluster_of(document)),
        "topic": _text(status, "topicName"),
        "partitions": _number(status, "partitions"),
        "replicationFactor": _number(status, "replicationFactor"),
        "underReplicated": _number(status, "underReplicated"),
        "offline": _number(status, "offline"),
        "isMoving": bool(move),
    }


def _quota(document: Document) -> Row:
    status = part(document, "status")
    usage = _maps(status, "usage")
    return {
        **_common(document),
        "cluster": "/".join(cluster_of(document)),
        "entity": _text(status, "entity"),
        "limits": {key: value for key, value in part(status, "applied").items() if isinstance(value, int | float)},
        "isSeen": bool(usage),
        "used": _text(status, "used"),
        "usedPercent": _percent(status),
        "produced": sum(_number(line, "producerByteRate") for line in usage),
        "fetched": sum(_number(line, "consumerByteRate") for line in usage),
        "throttledSeconds": _throttled(status),
    }


def _common(document: Document) -> Row:
    _, namespace, name = key_of_document(document)
    ready = _condition(document, "Ready")
    return {
        "namespace": namespace,
        "name": name,
        "ready": ready or {"status": "Unknown", "reason": NOT_SEEN},
        "isStalled": (_condition(document, "Stalled") or {}).get("status") == "True",
    }


def _condition(document: Document, kind: str) -> Row | None:
    """A condition; None where it is not there."""
    found = next((item for item in _maps(part(document, "status"), "conditions") if item.get("type") == kind), None)
    if found is None:
        return None
    words = {name: _text(found, name) for name in ("status", "reason", "message")}
    return {**words, "since": _text(found, "lastTransitionTime")}


def _list(document: Document, name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _maps(document: Document, name: str) -> list[dict[str, Any]]:
    return [item for item in _list(document, name) if isinstance(item, dict)]


def _lines(document: Document, name: str) -> list[str]:
    return [str(line)[:WORDS_LENGTH_MAX] for line in _list(document, name)[:LINES_MAX]]


def _text(document: Document, name: str) -> str:
    value = document.get(name)
    return value[:WORDS_LENGTH_MAX] if isinstance(value, str) else ""


def _number(document: Document, name: str) -> int:
    """A whole number that is not negative; 0 where there is none."""
    value = document.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
