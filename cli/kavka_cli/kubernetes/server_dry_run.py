"""What an API server would make of a resource that a person applies: its own words, by a server-side dry run.

As `kubectl apply` would do it: a resource that is not there is created; one that some manager applies server-side is
applied for that manager, so that a field that was taken out goes; any other is patched, and what `kubectl apply` wrote
the last time and is not written now is taken out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kavka_cli.kubernetes.api_server import MANAGER, ApiServer, Document
from kavka_operator.api.stored_resources import part

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DRY = {"dryRun": "All", "fieldValidation": "Strict"}
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A resource as it is, None where there is none, and as it would be; `warnings` are the API server's."""

    before: Document | None
    after: Document
    warnings: tuple[str, ...] = ()


def rehearse(server: ApiServer, written: Document) -> Rehearsed:
    """The resource as the API server would store it. Raises KubernetesError where the API server would refuse it."""
    before = server.find(written)
    if before is None:
        return Rehearsed(None, *server.offer("POST", written, {**DRY, "fieldManager": MANAGER}))
    if manager := applier_of(before):
        query = {**DRY, "fieldManager": manager, "force": "true"}
        return Rehearsed(before, *server.offer("PATCH", written, query, APPLY))
    query = {**DRY, "fieldManager": MANAGER}
    return Rehearsed(before, *server.offer("PATCH", merge_patch(before, written), query, MERGE))


def applier_of(document: Mapping[str, Any]) -> str | None:
    """The manager that applies a resource server-side; None where none does."""
    for entry in part(document, "metadata").get("managedFields") or ():
        is_ours = entry.get("subresource") or "f:spec" not in part(entry, "fieldsV1")
        if entry.get("operation") == "Apply" and not is_ours:
            return str(entry.get("manager"))
    return None


def merge_patch(before: Mapping[str, Any], written: Document) -> Document:
    """The patch that makes a resource what is written, without what was written the last time and is not now."""
    annotations = part(part(before, "metadata"), "annotations")
    try:
        last = json.loads(annotations.get(LAST_APPLIED, "{}"))
    except ValueError:
        last = {}
    return _without_former(last if isinstance(last, dict) else {}, written)


def _without_former(last: Mapping[str, Any], written: Mapping[str, Any]) -> Document:
    gone = {name: None for name in last if name not in written}
    inside = {
        name: _without_former(part(last, name), value) if isinstance(value, dict) else value
        for name, value in written.items()
    }
    return {**gone, **inside}
