"""How the resources stand, as figures: read from the statuses that were last written, at each scrape again. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.live.resource_cache import key_of_document

NOT_READY_MAX = 200
"""Resources that are named for not being Ready, those that have been so for longest."""
UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, order=True)
class NotReady:
    """A resource that is not Ready, and since when, in seconds since 1970."""

    since: float
    kind: str
    namespace: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Roll:
    """A roll under way; `blocked_since` is None while it waits for nothing."""

    namespace: str
    name: str
    done: int
    nodes: int
    blocked_since: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """The figures of all resources. `ready` counts them by kind and by the status of their Ready."""

    ready: Mapping[tuple[str, str], int]
    not_ready: tuple[NotReady, ...]
    omitted: int
    rolls: tuple[Roll, ...]


def standing(documents: Iterable[Mapping[str, Any]], not_ready_max: int = NOT_READY_MAX) -> Standing:
    """The figures of resources as an API server sends them. So many at most are named for not being Ready."""
    ready, not_ready, rolls = Counter[tuple[str, str]](), list[NotReady](), list[Roll]()
    for document in documents:
        kind, namespace, name = key_of_document(document)
        condition = _ready(document)
        state = str(condition.get("status", UNKNOWN))
        ready[kind, state] += 1
        if state != "True":
            since = _seconds(condition.get("lastTransitionTime")) or _seconds(_created(document)) or 0.0
            not_ready.append(NotReady(since, kind, namespace, name, str(condition.get("reason", "NotSeen"))))
        rolls += _rolls(document, namespace, name)
    named = sorted(not_ready)[:not_ready_max]
    return Standing(ready, tuple(named), len(not_ready) - len(named), tuple(rolls))


def _ready(document: Mapping[str, Any]) -> Mapping[str, Any]:
    found = part(document, "status").get("conditions")
    conditions = found if isinstance(found, list) else []
    return next((item for item in conditions if isinstance(item, dict) and item.get("type") == "Ready"), {})


def _rolls(document: Mapping[str, Any], namespace: str, name: str) -> Iterator[Roll]:
    """The roll that is under way in a cluster, if there is one."""
    rollout = part(part(document, "status"), "rollout")
    nodes = rollout.get("total")
    if isinstance(nodes, int) and nodes:
        done = rollout.get("done")
        yield Roll(namespace, name, done if isinstance(done, int) else 0, nodes, _seconds(rollout.get("blockedSince")))


def _created(document: Mapping[str, Any]) -> object:
    return part(document, "metadata").get("creationTimestamp")


def _seconds(moment: object) -> float | None:
    """A moment of Kubernetes in seconds since 1970; None where it is none."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return None
