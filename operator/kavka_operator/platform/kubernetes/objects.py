"""Every custom resource as it was last seen, whatever order the news of it came in.

The watch (one thread) writes, the threads of clusters read. A version that is older than what is known of the same
object is dropped: an answer to a write is newer than the watch for a moment.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kavka_operator.api.kinds import Key
from kavka_operator.api.stored import part

Document = dict[str, Any]
ClusterKey = tuple[str, str]
"""Namespace and name of a KafkaCluster, whether there is one or not."""

OBJECTS_MAX = 100_000


def key_of_document(document: Mapping[str, Any]) -> Key:
    """The key of an object as an API server sends it."""
    metadata = part(document, "metadata")
    return str(document.get("kind")), str(metadata.get("namespace", "default")), str(metadata.get("name"))


def cluster_of(document: Mapping[str, Any]) -> ClusterKey:
    """The cluster that an object is about."""
    kind, namespace, name = key_of_document(document)
    if kind == "KafkaCluster":
        return namespace, name
    ref = part(part(document, "spec"), "clusterRef")
    return str(ref.get("namespace") or namespace), str(ref.get("name"))


@dataclass(slots=True)
class Objects:
    """The newest version of every object, by the cluster that it is about; `wake` is told which cluster has news."""

    wake: Callable[[ClusterKey], None]
    _known: dict[Key, Document] = field(default_factory=dict)
    _keys: dict[ClusterKey, set[Key]] = field(default_factory=dict)
    _stamps: dict[ClusterKey, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_open: bool = False

    def open(self) -> None:
        """Wake every cluster, now that all objects are known, and from now on the clusters that have news."""
        self._is_open = True
        self._wake(self.clusters())

    def take(self, document: Mapping[str, Any]) -> None:
        """Note a version of an object. Wakes its cluster if what is wanted has changed."""
        key, cluster = key_of_document(document), cluster_of(document)
        with self._lock:
            before = self._known.get(key)
            if before is not None and not _is_newer(document, before):
                return
            assert before is not None or len(self._known) < OBJECTS_MAX, "more objects than this operator is made for"
            self._known[key] = _lean(document)
            moved = {cluster} | ({cluster_of(before)} if before is not None else set())
            self._keys.setdefault(cluster, set()).add(key)
            for former in moved - {cluster}:
                self._keys[former].discard(key)
            woken = moved if before is None or _wanted(before) != _wanted(document) else set()
            self._count(woken)
        self._wake(woken)

    def drop(self, key: Key, uid: str) -> None:
        """Forget an object that is gone, unless another of its name has come meanwhile."""
        with self._lock:
            known = self._known.get(key)
            if known is None or part(known, "metadata").get("uid") != uid:
                return
            cluster = cluster_of(self._known.pop(key))
            self._keys[cluster].discard(key)
            self._count({cluster})
        self._wake({cluster})

    def keep_only(self, kind: str, namespace: str | None, uids: Iterable[str], version: str) -> None:
        """Forget the objects of a kind (in a namespace) that a list of this version lacks; younger ones stay."""
        there = set(uids)
        with self._lock:
            gone = [
                (key, str(part(known, "metadata").get("uid")))
                for key, known in self._known.items()
                if key[0] == kind
                and namespace in {None, key[1]}
                and part(known, "metadata").get("uid") not in there
                and _version(known) <= _number(version)
            ]
        for key, uid in gone:
            self.drop(key, uid)

    def of(self, cluster: ClusterKey) -> list[Document]:
        """The objects that are about a cluster, the KafkaCluster first, then by name."""
        with self._lock:
            return [self._known[key] for key in sorted(self._keys.get(cluster, ()), key=_order)]

    def stamp(self, cluster: ClusterKey) -> int:
        """A number that grows whenever something that is wanted of a cluster changes."""
        with self._lock:
            return self._stamps.get(cluster, 0)

    def clusters(self) -> list[ClusterKey]:
        """Every cluster that an object is about."""
        with self._lock:
            return sorted(cluster for cluster, keys in self._keys.items() if keys)

    def _count(self, clusters: Iterable[ClusterKey]) -> None:
        for cluster in clusters:
            self._stamps[cluster] = self._stamps.get(cluster, 0) + 1

    def _wake(self, clusters: Iterable[ClusterKey]) -> None:
        for cluster in sorted(clusters) if self._is_open else ():
            self.wake(cluster)


def _order(key: Key) -> tuple[bool, Key]:
    return key[0] != "KafkaCluster", key


def _wanted(document: Mapping[str, Any]) -> tuple[Any, ...]:
    """The part of an object that people write; status and field managers are left out."""
    metadata = part(document, "metadata")
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("annotations"),
        metadata.get("labels"),
        document.get("spec"),
    )


def _lean(document: Mapping[str, Any]) -> Document:
    """The object without the field managers, which are longer than the rest."""
    metadata = {name: value for name, value in part(document, "metadata").items() if name != "managedFields"}
    return {**document, "metadata": metadata}


def _is_newer(document: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    is_same = part(document, "metadata").get("uid") == part(known, "metadata").get("uid")
    return not is_same or _version(document) > _version(known)


def _version(document: Mapping[str, Any]) -> int:
    return _number(part(document, "metadata").get("resourceVersion"))


def _number(version: object) -> int:
    """The resource version as the number that it is, and that may be compared within one kind (KEP-5504)."""
    return int(str(version)) if str(version).isdecimal() else 0
