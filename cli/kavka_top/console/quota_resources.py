"""Edits the ClientQuotas of a local cluster: the resource of an entity, the diff that a text makes, the apply, the
deletion.

A text goes the way of `kavka apply`: it is validated by the models of the resources, whose errors name line, field and
fix. What is applied is exactly the diff that was shown: its sum is handed back, and compared while nobody else writes.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from kavka_cli.dry_run import foresee
from kavka_cli.exported_resources import LeftOut, Wanted, exported_quotas
from kavka_cli.local_clusters import is_running
from kavka_cli.local_resources import known_resources, layout_of, write_to
from kavka_cli.output import CommandError
from kavka_cli.resource_diff import as_written, unified, unified_deletion
from kavka_operator.api import API_VERSION
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, Declared, load_text
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.api.stored_resources import UnreadableError, resource_from
from kavka_operator.kafka.admin import AdminError
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Edit, Store
from kavka_operator.web_page.documents import Document, shortened

TEXT_BYTES_MAX: Final = 64 * 1024
NAME: Final = "the text"
"""The file that messages name."""


class RefusedEditError(Exception):
    """A text that is not applied; the message says why, and what to write instead."""


class OtherDiffError(Exception):
    """A diff that is not the one that was shown: the resource was changed meanwhile."""


@dataclass(frozen=True, slots=True)
class LocalQuotas:
    """The ClientQuotas of a cluster of this machine."""

    layout: Layout

    def resource(self, entity: AnyEntity | None, limits: Mapping[str, float]) -> Document:
        """Return the resource of an entity as a text, with what was seen of it; of an entity without one, the text
        that would declare its limits as they are. Without an entity it is a text to begin with.
        """
        if entity is None:
            return {
                "text": self._template(),
                "name": None,
                "note": "A new resource: write its name and whom it limits.",
            }
        found = self._owner(entity)
        if found is None:
            return self._declaring(entity, limits)
        document = Store(self.layout).document(key_of(found))
        if document is None:
            return self._declaring(entity, limits)
        return {"text": as_written(document), "name": found.name, "note": "", "state": self._state(found)}

    def difference(self, text: str) -> Document:
        """Return the diff that an apply makes, its sum, and what the operator would do. Raises RefusedEditError."""
        declared = self._declared(text)
        (edit,) = Store(self.layout).preview([declared], datetime.now(UTC))
        lines = [] if edit.change == "unchanged" else list(unified(edit))[1:]
        found: Document = {"change": edit.change, "name": edit.key[2], "lines": lines, "sum": sum_of(edit)}
        return {**found, **self._foreseen(edit)}

    def apply(self, text: str, shown: str) -> Document:
        """Apply a text whose diff was `shown`, by its sum. Raises RefusedEditError and OtherDiffError."""

        def judge(edits: Sequence[Edit]) -> None:
            """Raise OtherDiffError where the edits are not what was shown."""
            if [sum_of(edit) for edit in edits] != [shown]:
                raise OtherDiffError("the resource was changed meanwhile; look at the difference again")

        (edit,) = write_to(self.layout, [self._declared(text)], judge)
        return {"change": edit.change, "name": edit.key[2]}

    def deletion(self, name: str) -> Document:
        """Return the diff that deleting a quota makes, its sum, and what the operator would do. Raises
        RefusedEditError.
        """
        key = self._key(name)
        document = Store(self.layout).document(key)
        if document is None:
            raise RefusedEditError(f'there is no ClientQuota "{name}" of this cluster')
        lines = list(unified_deletion(key, document))[1:]
        found: Document = {"change": "deleted", "name": name, "lines": lines, "sum": sum_of_deletion(key, document)}
        return {**found, **self._foreseen_of(key, {}, [key])}

    def delete(self, name: str, shown: str) -> Document:
        """Delete a quota whose diff was `shown`, by its sum. Raises RefusedEditError and OtherDiffError."""
        key = self._key(name)

        def judge(document: Mapping[str, Any] | None) -> None:
            """Raise OtherDiffError where what would be deleted is not what was shown."""
            if document is None or sum_of_deletion(key, document) != shown:
                raise OtherDiffError("the resource was changed meanwhile; look at the difference again")

        Store(self.layout).mark_deleted(key, datetime.now(UTC), judge)
        return {"change": "deleted", "name": name}

    def _key(self, name: str) -> Key:
        """Return the key of a quota of this cluster. Raises RefusedEditError where there is none of this name."""
        key = ClientQuota.kind_name, self.layout.namespace, name
        if not any(key_of(quota) == key for quota in self._quotas()):
            raise RefusedEditError(f'there is no ClientQuota "{name}" of this cluster')
        return key

    def state(self, name: str) -> Document:
        """Return what the operator last said of a resource, by its name in the namespace of the cluster."""
        for resource in Store(self.layout).all():
            if isinstance(resource, ClientQuota) and resource.name == name:
                return self._state(resource)
        return {"isCurrent": False, "ready": "gone", "message": ""}

    def _state(self, quota: ClientQuota) -> Document:
        ready = quota.status.condition("Ready")
        is_current = ready is not None and quota.status.observed_generation == quota.metadata.generation
        if not is_running(self.layout):
            words = f'KafkaCluster "{self.layout.cluster}" is not running; `kavka up` will make it so'
            return {"isCurrent": False, "isStopped": True, "ready": "stopped", "message": words}
        if quota.metadata.deletion_timestamp is not None:
            return {"isCurrent": False, "ready": "pending", "message": "the operator has yet to delete it"}
        if ready is None or not is_current:
            return {"isCurrent": False, "ready": "pending", "message": "the operator has not looked at it yet"}
        said = "Ready" if ready.status == "True" else ready.reason
        return {"isCurrent": True, "ready": said, "message": shortened(ready.message)}

    def _declared(self, text: str) -> Declared:
        """Return the one ClientQuota of this cluster that a text declares. Raises RefusedEditError."""
        try:
            found = load_text(NAME, text, known_resources(self._state_directory))
        except BadResourcesError as error:
            raise RefusedEditError("\n".join(map(str, error.faults[:20]))) from error
        if len(found) != 1 or not isinstance(found[0].resource, ClientQuota):
            raise RefusedEditError("write one ClientQuota; other resources are applied by `kavka apply`")
        if layout_of(found[0].resource, self._state_directory) != self.layout:
            words = f'spec.clusterRef names another cluster; this page edits quotas of "{self.layout.cluster}"'
            raise RefusedEditError(words)
        return found[0]

    @property
    def _state_directory(self) -> Path:
        return self.layout.root.parent.parent

    def _foreseen(self, edit: Edit) -> Document:
        """Return what the running cluster would do, and what is in the way."""
        if edit.change == "unchanged":
            return {"actions": [], "obstacles": []}
        return self._foreseen_of(edit.key, {edit.key: edit.after}, ())

    def _foreseen_of(self, key: Key, changed: Mapping[Key, dict[str, Any]], deleted: Sequence[Key]) -> Document:
        try:
            found = foresee(self.layout, changed, deleted)[key]
        except (CommandError, AdminError, UnreadableError, KeyError) as error:
            return {"actions": [], "obstacles": [f"what Kafka would be told is not known: {error}"]}
        return {"actions": [*found.actions, *found.waits], "obstacles": found.obstacles}

    def _owner(self, entity: AnyEntity) -> ClientQuota | None:
        """Return the resource that sets the quota of an entity: of several the oldest."""
        found = [quota for quota in self._quotas() if entity_of(quota.spec.entity) == entity]
        return min(found, key=lambda quota: quota.seniority, default=None)

    def _quotas(self) -> list[ClientQuota]:
        return [resource for resource in Store(self.layout).all() if isinstance(resource, ClientQuota)]

    def _declaring(self, entity: AnyEntity, limits: Mapping[str, float]) -> Document:
        wanted = Wanted(self.layout.cluster, self.layout.namespace)
        document = next(iter(exported_quotas(wanted, {entity: limits})), None)
        if document is None or isinstance(document, LeftOut):
            why = document.why if document is not None else "has no limits"
            return {"text": self._template(), "name": None, "note": f"No resource declares this quota, which {why}."}
        note = "No resource declares this quota. Once this one is applied, it does."
        return {"text": yaml.safe_dump(document, sort_keys=False, allow_unicode=True), "name": None, "note": note}

    def _template(self) -> str:
        place = f"  name: NAME\n  namespace: {self.layout.namespace}\n"
        spec = f"  clusterRef:\n    name: {self.layout.cluster}\n  entity:\n    clientId:\n      name: CLIENT-ID\n"
        limits = "  limits:\n    producerByteRate: 1Mi\n"
        return f"apiVersion: {API_VERSION}\nkind: ClientQuota\nmetadata:\n{place}spec:\n{spec}{limits}"


def sum_of(edit: Edit) -> str:
    """Return the sum of an edit's diff."""
    return hashlib.sha256("\n".join([edit.change, *unified(edit)]).encode()).hexdigest()


def sum_of_deletion(key: Key, document: Mapping[str, Any]) -> str:
    """Return the sum of the diff that deleting a resource makes."""
    return hashlib.sha256("\n".join(["deleted", *unified_deletion(key, document)]).encode()).hexdigest()


def cluster_of(layout: Layout) -> KafkaCluster | None:
    """Return the KafkaCluster of a local cluster with its status; None where it cannot be understood."""
    document = Store(layout).document((KafkaCluster.kind_name, layout.namespace, layout.cluster))
    try:
        found: AnyResource | None = None if document is None else resource_from(document)
    except UnreadableError:
        return None
    return found if isinstance(found, KafkaCluster) else None
