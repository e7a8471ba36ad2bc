"""kopf's part: it watches, and what it sees is noted. Nothing is decided and nothing written here."""

from typing import Any

import kopf

from kavka_operator.api import GROUP, VERSION
from kavka_operator.platform.kubernetes.live.resource_cache import Objects, key_of_document
from kavka_operator.platform.kubernetes.objects.names import CLUSTER, MANAGED_BY, OPERATOR
from kavka_operator.process.watch_events import News

REGISTRY = kopf.OperatorRegistry()
OURS: dict[str, Any] = {CLUSTER: kopf.PRESENT, MANAGED_BY: OPERATOR}
"""The labels of what nodes are made of."""


def select(settings: kopf.OperatorSettings) -> None:
    """Let the API server send only those of the objects that nodes are made of, not every pod there is."""
    for kind in ("pods", "persistentvolumeclaims", "services", "statefulsets"):
        settings.watching.label_selectors[kind] = f"{CLUSTER},{MANAGED_BY}={OPERATOR}"


@kopf.on.login(registry=REGISTRY)
def on_login(**known: Any) -> kopf.ConnectionInfo | None:
    """Find the API server as kubectl does, or as a pod does."""
    return kopf.login_with_service_account(**known) or kopf.login_with_kubeconfig(**known)


@kopf.on.event(GROUP, VERSION, "kafkaclusters", registry=REGISTRY)
@kopf.on.event(GROUP, VERSION, "topics", registry=REGISTRY)
@kopf.on.event(GROUP, VERSION, "clientquotas", registry=REGISTRY)
@kopf.on.event(GROUP, VERSION, "kafkausers", registry=REGISTRY)
async def on_event(event: kopf.RawEvent, body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """An object was made, changed, listed, or is gone."""
    objects: Objects = memo.objects
    if event["type"] == "DELETED":
        objects.drop(key_of_document(body), str(body["metadata"].get("uid")))
    else:
        objects.take(dict(body))


@kopf.on.event("", "v1", "pods", labels=OURS, registry=REGISTRY)
@kopf.on.event("", "v1", "persistentvolumeclaims", labels=OURS, registry=REGISTRY)
@kopf.on.event("", "v1", "services", labels=OURS, registry=REGISTRY)
@kopf.on.event("apps", "v1", "statefulsets", labels=OURS, registry=REGISTRY)
async def on_news(body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """An object that a node is made of was made, changed, listed, or is gone."""
    news: News = memo.news
    news.take(body)
