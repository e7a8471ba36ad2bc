"""The resources of a local cluster: a directory that plays the part of the API server.

`resources/` holds what is wanted, with the metadata that an API server would give (uid, generation, creation time);
`status/` holds what was last seen. `kavka apply` writes the one, `kavka up` the other, so they never overwrite each
other. A deleted resource stays, marked, until the running cluster has done what its deletion asks for; applying it
again before that takes the mark away. A file that this version cannot understand is left alone (`Unreadable`).
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import yaml

from kavka_operator.api import GROUP
from kavka_operator.api.files import Declared
from kavka_operator.api.kinds import KINDS, AnyResource
from kavka_operator.api.stored import UnreadableError, resource_from
from kavka_operator.platform.local.files import locked, read_text, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.reconcile.plan import settled, stalled
from kavka_operator.reconcile.status import Status
from kavka_operator.settle import Key

Change = Literal["created", "configured", "unchanged"]
Stamp = tuple[int, ...]
KEPT_METADATA = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stored resource that this version cannot understand: what it is, as far as that is known, and why not."""

    key: Key
    document: dict[str, Any]
    words: str

    @property
    def is_deleted(self) -> bool:
        """Whether somebody has asked for its deletion."""
        return bool(_part(self.document, "metadata").get("deletionTimestamp"))

    @property
    def topic_name(self) -> str | None:
        """The topic that it claims, if it is a Topic."""
        return str(_part(self.document, "spec").get("topicName") or self.key[2]) if self.key[0] == "Topic" else None


@dataclass(slots=True)
class Store:
    """The resources of one cluster."""

    layout: Layout
    _read_before: dict[Path, tuple[Stamp, AnyResource | Unreadable]] = field(default_factory=dict)

    def apply(self, declared: Iterable[Declared], now: datetime) -> list[tuple[AnyResource, Change]]:
        """Write what is wanted; what became of each."""
        with self._alone():
            return [self._apply(each.resource, each.document.value, now) for each in declared]

    def mark_deleted(self, key: Key, now: datetime) -> None:
        """Ask for a resource to be deleted."""
        with self._alone():
            kind, namespace, name = key
            path = self._wanted(kind, name)
            value = self._raw(path)
            metadata = {"name": name, "namespace": namespace, **_part(value, "metadata")}
            metadata.setdefault("deletionTimestamp", _stamp(now))
            _write(path, {**value, "kind": kind, "metadata": metadata})

    def remove(self, key: Key) -> bool:
        """Forget a resource whose deletion is done; False if somebody has applied it again meanwhile."""
        with self._alone():
            kind, _, name = key
            path = self._wanted(kind, name)
            if path.exists() and not _part(self._raw(path), "metadata").get("deletionTimestamp"):
                return False
            path.unlink(missing_ok=True)
            self._seen(kind, name).unlink(missing_ok=True)
            return True

    def set_status(self, resource: AnyResource, status: Status) -> bool:
        """Write a status if it says anything new; whether it did."""
        if status == resource.status:
            return False
        _write(self._seen(resource.kind, resource.name), status.to_dict())
        return True

    def note_unreadable(self, one: Unreadable, now: datetime) -> None:
        """Write the condition of a resource that cannot be understood, beside what its status said before."""
        kind, _, name = one.key
        before = _part(one.document, "status")
        generation = int(_part(one.document, "metadata").get("generation", 0))  # 0: before any that is applied
        words = stalled("Invalid", one.words)
        said = {(each.get("type"), each.get("message")) for each in before.get("conditions") or () if each}
        if said != {(word.type, word.message) for word in words}:
            conditions = [each.to_dict() for each in settled(words, (), generation, now)]
            _write(self._seen(kind, name), {**before, "observedGeneration": generation, "conditions": conditions})

    def all(self) -> list[AnyResource]:
        """Every resource that can be understood, with its status, clusters first, then by name."""
        return self.read()[0]

    def read(self) -> tuple[list[AnyResource], list[Unreadable]]:
        """Every resource with its status, clusters first, then by name; and those that cannot be understood."""
        paths = sorted(self._paths(), key=lambda path: (_rank(self._key(path)[0]), path.name))
        read = {path: self._read(path) for path in paths}
        self._read_before = read
        every = [each for _, each in read.values()]
        unreadable = [each for each in every if isinstance(each, Unreadable)]
        return [each for each in every if not isinstance(each, Unreadable)], unreadable

    def _read(self, path: Path) -> tuple[Stamp, AnyResource | Unreadable]:
        """A resource, and by what to know that its files are still the same: then they are not read again."""
        stamp = (*_stamp_of(path), *_stamp_of(self.layout.status / path.name))
        before = self._read_before.get(path)
        if before is not None and before[0] == stamp:
            return before
        document = self._document(path)
        try:
            return stamp, resource_from(document)
        except UnreadableError as error:
            return stamp, Unreadable(self._key(path), document, str(error))

    def has(self, key: Key) -> bool:
        """Whether there is such a resource."""
        kind, _, name = key
        return self._wanted(kind, name).exists()

    def documents(self) -> dict[Key, dict[str, Any]]:
        """Every resource as its files hold it, whether it can be understood or not."""
        documents = {self._key(path): self._document(path) for path in self._paths()}
        return dict(sorted(documents.items(), key=lambda item: (_rank(item[0][0]), item[0])))

    def stamp(self) -> tuple[int, ...]:
        """Changes whenever a wanted resource does. Costs two system calls."""
        try:
            info = self.layout.resources.stat()
        except FileNotFoundError:
            return ()
        return info.st_mtime_ns, info.st_ctime_ns

    def _paths(self) -> list[Path]:
        return [path for path in self.layout.resources.glob("*.yaml") if not path.name.startswith(".")]

    def _key(self, path: Path) -> Key:
        """What a file is of, by its name: that stays legible whatever is in the file."""
        kind, _, name = path.stem.partition(".")
        return next((known for known in KINDS if known.lower() == kind), kind), self.layout.namespace, name

    def _document(self, path: Path) -> dict[str, Any]:
        value, status = self._raw(path), self._raw(self.layout.status / path.name)
        kind, namespace, name = self._key(path)
        metadata = {"name": name, "namespace": namespace, **_part(value, "metadata")}
        status = {key: each for key, each in status.items() if each not in ([], {})}
        return {**value, "kind": kind, "metadata": metadata, "status": status}

    def _raw(self, path: Path) -> dict[str, Any]:
        """What a file holds; nothing if it is no YAML, or not there."""
        try:
            value = _parse(read_text(path) or "")
        except (yaml.YAMLError, ValueError):  # a date that is none, bytes that are no text
            return {}
        return value if isinstance(value, dict) else {}

    def _apply(self, resource: AnyResource, document: dict[str, Any], now: datetime) -> tuple[AnyResource, Change]:
        path = self._wanted(resource.kind, resource.name)
        old = self._raw(path) or None
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


def _stamp_of(path: Path) -> Stamp:
    """Changes with whatever replaces the file."""
    try:
        info = path.stat()
    except FileNotFoundError:
        return ()
    return info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_size


def _rank(kind: str) -> int:
    """Where a kind stands in the order of kinds."""
    return list(KINDS).index(kind) if kind in KINDS else len(KINDS)


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A map in a document; empty where there is none."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


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
            key: old["metadata"][key]  # a mark of deletion is not kept: the later word counts
            for key in ("uid", "creationTimestamp", "generation")
            if key in _part(old, "metadata")
        }
        metadata |= kept
        was = _part(old, "metadata")
        is_other = old.get("spec") != spec or _orders(was) != _orders(metadata)
        metadata["generation"] += int(is_other)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _orders(metadata: dict[str, Any]) -> dict[str, Any]:
    """The annotations that ask the operator for something: an approval is seen to when its generation is."""
    annotations = _part(metadata, "annotations")
    return {key: value for key, value in annotations.items() if key.startswith(f"{GROUP}/")}


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
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    write_whole(path, yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110))
