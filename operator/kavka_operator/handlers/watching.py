"""kopf's part: it watches, and what it sees is noted. Nothing is decided and nothing written here."""

from typing import Any

import kopf

from kavka_operator.api import GROUP, VERSION
from kavka_operator.platform.kubernetes.objects import Objects, key_of_document

REGISTRY = kopf.OperatorRegistry()


@kopf.on.login(registry=REGISTRY)
def on_login(**known: Any) -> kopf.ConnectionInfo | None:
    """Find the API server as kubectl does, or as a pod does."""
    return kopf.login_with_service_account(**known) or kopf.login_with_kubeconfig(**known)


@kopf.on.event(GROUP, VERSION, "kafkaclusters", registry=REGISTRY)
@kopf.on.event(GROUP, VERSION, "topics", registry=REGISTRY)
@kopf.on.event(GROUP, VERSION, "clientquotas", registry=REGISTRY)
async def on_event(event: kopf.RawEvent, body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """An object was made, changed, listed, or is gone."""
    objects: Objects = memo.objects
    if event["type"] == "DELETED":
        objects.drop(key_of_document(body), str(body["metadata"].get("uid")))
    else:
        objects.take(dict(body))
