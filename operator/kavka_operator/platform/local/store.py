"""The resources of a local cluster: a directory that plays the part of the API server.

`resources/` holds what is wanted, with the metadata that an API server would give (uid, generation, creation time);
`status/` holds what was last seen. `kavka apply` writes the one, `kavka up` the other, so they never overwrite each
other. A deleted resource stays, marked, until the running cluster has done what its deletion asks for.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import yaml

from kavka_operator.api.files import Declared, resource_from
from kavka_operator.api.kinds import KINDS, AnyResource
from kavka_operator.platform.local.files import locked, read_text, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.reconcile.status import Status
from kavka_operator.settle import Key, key_of

Change = Literal["created", "configured", "unchanged"]
KEPT_METADATA = ("labels", "annotations")


@dataclass(slots=True)
class Store:
    """The resources of one cluster."""

    layout: Layout

    def apply(self, declared: Iterable[Declared], now: datetime) -> list[tuple[AnyResource, Change]]:
        """Write what is wanted; what became of each."""
        with self._alone():
            return [self._apply(each.resource, each.document.value, now) for each in declared]

    def mark_deleted(self, resource: AnyResource, now: datetime) -> None:
        """Ask for a resource to be deleted."""
        with self._alone():
            path = self._wanted(resource.kind, resource.name)
            value = _parse(path.read_text())
            value["metadata"].setdefault("deletionTimestamp", _stamp(now))
            _write(path, value)

    def remove(self, key: Key) -> None:
        """Forget a resource whose deletion is done."""
        with self._alone():
            kind, _, name = key
            self._wanted(kind, name).unlink(missing_ok=True)
            self._seen(kind, name).unlink(missing_ok=True)

    def set_status(self, resource: AnyResource, status: Status) -> bool:
        """Write a status if it says anything new; whether it did."""
        if status == resource.status:
            return False
        _write(self._seen(resource.kind, resource.name), status.to_dict())
        return True

    def all(self) -> list[AnyResource]:
        """Every resource with its status, clusters first, then by name."""
        found = [self._read(path) for path in self.layout.resources.glob("*.yaml") if not path.name.startswith(".")]
        order = list(KINDS)
        return sorted(found, key=lambda each: (order.index(each.kind), each.name))

    def documents(self) -> dict[Key, dict[str, Any]]:
        """Every resource as text would hold it."""
        return {key_of(each): self._document(each) for each in self.all()}

    def stamp(self) -> tuple[int, ...]:
        """Changes whenever a wanted resource does. Costs two system calls."""
        try:
            info = self.layout.resources.stat()
        except FileNotFoundError:
            return ()
        return info.st_mtime_ns, info.st_ctime_ns

    def _document(self, resource: AnyResource) -> dict[str, Any]:
        value: dict[str, Any] = _parse(self._wanted(resource.kind, resource.name).read_text())
        status = {key: each for key, each in resource.status.to_dict().items() if each not in ([], {})}
        return {**value, "status": status}

    def _read(self, path: Path) -> AnyResource:
        value = _parse(path.read_text())
        seen = read_text(self.layout.status / path.name)
        return resource_from({**value, "status": _parse(seen) or {}} if seen else value)

    def _apply(self, resource: AnyResource, document: dict[str, Any], now: datetime) -> tuple[AnyResource, Change]:
        path = self._wanted(resource.kind, resource.name)
        before = read_text(path)
        old = _parse(before) if before is not None else None
        value = _merged(resource, document, old, now)
        if old == value:
            return resource, "unchanged"
        _write(path, value)
        return resource, "created" if old is None else "configured"

    def _wanted(self, kind: str, name: str) -> Path:
        return self.layout.resources / f"{kind.lower()}.{name}.yaml"

    def _seen(self, kind: str, name: str) -> Path:
        return self.layout.status / f"{kind.lower()}.{name}.yaml"

    def _alone(self) -> Any:
        return locked(self.layout.root / "store.lock")


def _merged(
    resource: AnyResource, document: dict[str, Any], old: dict[str, Any] | None, now: datetime
) -> dict[str, Any]:
    """The resource as the store keeps it: the person's spec, the store's metadata."""
    given = document["metadata"]
    metadata = {
        "name": resource.name,
        "namespace": resource.metadata.namespace,
        **{key: given[key] for key in KEPT_METADATA if given.get(key)},
        "uid": str(uuid.uuid4()),
        "creationTimestamp": _stamp(now),
        "generation": 1,
    }
    spec = _plain(document["spec"])
    if old is not None:
        kept = {
            key: old["metadata"][key]
            for key in ("uid", "creationTimestamp", "generation", "deletionTimestamp")
            if key in old["metadata"]
        }
        metadata |= kept
        metadata["generation"] += int(old["spec"] != spec)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _plain(value: Any) -> Any:
    """Times as text, so that a document read back equals the one that was written."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case datetime():
            return value.isoformat()
        case _:
            return value


def _stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse(text: str) -> Any:
    """By the C parser where PyYAML has it: ten times as fast, and every look at the cluster reads all resources."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders


def _write(path: Path, value: dict[str, Any]) -> None:
    write_whole(path, yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110))
