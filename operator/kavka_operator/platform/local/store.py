"""The resources of a local cluster: a directory that plays the part of the API server.

`resources/` holds what is wanted, with the metadata that an API server would give (uid, generation, creation time);
`status/` holds what was last seen. `kavka apply` writes the one, `kavka up` the other, so they never overwrite each
other. A deleted resource stays, marked, until the running cluster has done what its deletion asks for; applying it
again before that takes the mark away. A file that this version cannot understand is left alone (`Unreadable`).
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kavka_operator.api import GROUP
from kavka_operator.api.files import Declared
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.stored_resources import Unreadable, UnreadableError, part, resource_from
from kavka_operator.platform.local.files import Lock, locked
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.resource_files import ResourceFiles, by_kind
from kavka_operator.platform.local.yaml_directory import Folder, Stamp
from kavka_operator.reconcile.status import Status

Change = Literal["created", "configured", "unchanged"]
KEPT_METADATA = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Edit:
    """The change that an apply makes to what is stored: documents before and after, None where there is none."""

    key: Key
    change: Change
    before: dict[str, Any] | None
    after: dict[str, Any]


@dataclass(slots=True)
class Store:
    """The resources of one cluster."""

    layout: Layout
    parse: Callable[[str], Any] | None = None
    _wanted: Folder = field(init=False)
    _seen: Folder = field(init=False)
    _files: ResourceFiles = field(init=False)
    _read_before: dict[str, tuple[Stamp, AnyResource | Unreadable]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._files = ResourceFiles(self.layout.namespace)
        self._wanted, self._seen = Folder(self.layout.resources, self.parse), Folder(self.layout.status, self.parse)

    def apply(
        self, declared: Iterable[Declared], now: datetime, judge: Callable[[Sequence[Edit]], None] | None = None
    ) -> list[Edit]:
        """Write what is wanted; the edit of each resource. Nothing is written where `judge`, which gets the edits while
        nobody else may write, raises an error.
        """
        with self._alone():
            edits = self.preview(declared, now)
            if judge is not None:
                judge(edits)
            for edit in edits:
                if edit.change != "unchanged":
                    self._wanted.write(self._files.name_of(edit.key), edit.after)
            return edits

    def preview(self, declared: Iterable[Declared], now: datetime) -> list[Edit]:
        """The edits that `apply` would make; nothing is written."""
        return [self._edit(entry.resource, entry.document.value, now) for entry in declared]

    def mark_deleted(
        self, key: Key, now: datetime, judge: Callable[[Mapping[str, Any] | None], None] | None = None
    ) -> None:
        """Ask for a resource to be deleted. `judge` gets the document, None where there is none, under the lock of the
        store; nothing is written where it raises an error.
        """
        with self._alone():
            kind, namespace, name = key
            if judge is not None:
                judge(self.document(key))
            value = self._wanted.value(self._files.name_of(key))
            metadata = {"name": name, "namespace": namespace, **part(value, "metadata")}
            metadata.setdefault("deletionTimestamp", _stamp(now))
            self._wanted.write(self._files.name_of(key), {**value, "kind": kind, "metadata": metadata})

    def annotate(self, key: Key, annotations: Mapping[str, str | None]) -> bool:
        """Set annotations of a resource, and take away those that are None; False where there is no such resource."""
        with self._alone():
            value = self._wanted.value(self._files.name_of(key))
            if not value:
                return False
            metadata = part(value, "metadata")
            after = {**part(metadata, "annotations"), **annotations}
            kept = {name: text for name, text in after.items() if text is not None}
            if kept != part(metadata, "annotations"):
                generation = int(metadata.get("generation", 1)) + 1
                metadata = {**metadata, "annotations": kept, "generation": generation}
                if not kept:
                    del metadata["annotations"]  # an empty map would be a difference to the file of its user
                self._wanted.write(self._files.name_of(key), {**value, "metadata": metadata})
            return True

    def hold(self, wanted: Sequence[tuple[AnyResource, bool]]) -> Mapping[Key, Exception]:
        """Do nothing: every deleted resource is kept until `remove`."""
        return {}

    def remove(self, key: Key) -> bool:
        """Forget a resource whose deletion is done; False if it was applied again meanwhile."""
        with self._alone():
            file = self._files.name_of(key)
            value = self._wanted.value(file)
            if self._wanted.has(file) and not part(value, "metadata").get("deletionTimestamp"):
                return False
            self._wanted.remove(file)
            self._seen.remove(file)
            return True

    def remove_all(self, keys: Sequence[Key]) -> Mapping[Key, bool | Exception]:
        """Forget many resources, as `remove` does one; why some could not be forgotten."""
        found: dict[Key, bool | Exception] = {}
        for key in keys:
            try:
                found[key] = self.remove(key)
            except OSError as error:
                found[key] = error
        return found

    def set_status(self, resource: AnyResource, status: Status) -> bool:
        """Write a status if it says anything new; whether it was written."""
        if status == resource.status:
            return False
        self._seen.write(self._files.name_of(key_of(resource)), status.to_dict())
        return True

    def set_statuses(self, wanted: Sequence[tuple[AnyResource, Status]]) -> Mapping[Key, Exception]:
        """Write statuses of many resources, each if it says anything new; why some could not be written."""
        faults: dict[Key, Exception] = {}
        for resource, status in wanted:
            try:
                self.set_status(resource, status)
            except OSError as error:
                faults[key_of(resource)] = error
        return faults

    def note_unreadable(self, unread: Unreadable, status: Mapping[str, Any]) -> None:
        """Write the status of a resource that cannot be understood."""
        if status != part(unread.document, "status"):
            self._seen.write(self._files.name_of(unread.key), dict(status))

    def all(self) -> list[AnyResource]:
        """Every resource that can be understood, with its status, clusters first, then by name."""
        return self.read()[0]

    def read(self) -> tuple[list[AnyResource], list[Unreadable]]:
        """Every resource with its status, clusters first, then by name; and those that cannot be understood."""
        seen = self._seen.stamps()
        stamps = {file: (*stamp, *seen.get(file, ())) for file, stamp in self._wanted.stamps().items()}
        read = {file: self._read(file, stamps[file]) for file in sorted(stamps, key=by_kind)}
        self._read_before = read
        every = [stored for _, stored in read.values()]
        unreadable = [stored for stored in every if isinstance(stored, Unreadable)]
        return [stored for stored in every if not isinstance(stored, Unreadable)], unreadable

    def _read(self, file: str, stamp: Stamp) -> tuple[Stamp, AnyResource | Unreadable]:
        """A resource with the stamps of its files; while they are the same it is not parsed again."""
        before = self._read_before.get(file)
        if before is not None and before[0] == stamp:
            return before
        document = self._document(file)
        try:
            return stamp, resource_from(document)
        except UnreadableError as error:
            return stamp, Unreadable(self._files.key_in(file), document, str(error))

    def has(self, key: Key) -> bool:
        """Whether there is such a resource."""
        return self._wanted.has(self._files.name_of(key))

    def documents(self) -> dict[Key, dict[str, Any]]:
        """Every resource as its files hold it, whether it can be understood or not."""
        return {self._files.key_in(file): self._document(file) for file in sorted(self._wanted.stamps(), key=by_kind)}

    def document(self, key: Key) -> dict[str, Any] | None:
        """One resource as its files hold it; None if there is none."""
        return self._document(self._files.name_of(key)) if self.has(key) else None

    def stamp(self) -> Stamp:
        """A value that changes with a wanted resource, except for two changes within a few milliseconds: the next look,
        some seconds later, finds the second one. Costs one system call.
        """
        return self._wanted.stamp()

    def sight(self) -> Stamp:
        """A value that changes with a wanted resource or a status, except for two changes within a few milliseconds."""
        return *self._wanted.stamp(), *self._seen.stamp()

    @property
    def is_being_changed(self) -> bool:
        """Whether another process writes what is wanted now, so that the rest of it is about to come."""
        return Lock(self._lock).is_held_elsewhere()

    def _document(self, file: str) -> dict[str, Any]:
        value, status = self._wanted.value(file), self._seen.value(file)
        kind, namespace, name = self._files.key_in(file)
        metadata = {"name": name, "namespace": namespace, **part(value, "metadata")}
        status = {key: field for key, field in status.items() if field not in ([], {})}
        return {**value, "kind": kind, "metadata": metadata, "status": status}

    def _edit(self, resource: AnyResource, document: dict[str, Any], now: datetime) -> Edit:
        before = self._wanted.value(self._files.name_of(key_of(resource))) or None
        after = _merged(resource, document, before, now)
        change: Change = "created" if before is None else "unchanged" if before == after else "configured"
        return Edit(key_of(resource), change, before, after)

    @property
    def _lock(self) -> Path:
        return self.layout.root / "store.lock"

    def _alone(self) -> AbstractContextManager[None]:
        return locked(self._lock)


def _merged(
    resource: AnyResource, document: dict[str, Any], old: dict[str, Any] | None, now: datetime
) -> dict[str, Any]:
    """The resource as the store keeps it: the person's spec, the store's metadata."""
    given = document["metadata"]
    metadata: dict[str, Any] = {
        "name": resource.name,
        "namespace": resource.metadata.namespace,
        **{key: given[key] for key in KEPT_METADATA if given.get(key)},
        "uid": str(uuid.uuid4()),
        "creationTimestamp": _stamp(now),
        "generation": 1,
    }
    spec = _plain(document["spec"])
    if old is not None:
        kept: dict[str, Any] = {
            key: old["metadata"][key]  # a mark of deletion is not kept: the resource was applied after it
            for key in ("uid", "creationTimestamp", "generation")
            if key in part(old, "metadata")
        }
        metadata |= kept
        was = part(old, "metadata")
        is_other = old.get("spec") != spec or _orders(was) != _orders(metadata)
        metadata["generation"] += int(is_other)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _orders(metadata: dict[str, Any]) -> dict[str, Any]:
    """The annotations that ask the operator for something; a change of one makes a new generation."""
    annotations = part(metadata, "annotations")
    return {key: value for key, value in annotations.items() if key.startswith(f"{GROUP}/")}


def _plain(value: Any) -> Any:
    """The value with times as text, so that a document read back equals the one that was written."""
    match value:
        case dict():
            return {key: _plain(part) for key, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case datetime():
            return value.isoformat()
        case _:
            return value


def _stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
