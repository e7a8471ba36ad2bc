"""Every custom resource as it was last seen, whatever order the news of it came in.

The watch (one thread) writes, the threads of clusters read. A version that is older than what is known of the same
object is dropped: an answer to a write is newer than the watch for a moment. What is gone stays gone: an answer to a
write or a list, on its way since before the deletion, may come after the news of it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kavka_operator.api.kinds import Key
from kavka_operator.api.stored_resources import part

Document = dict[str, Any]
ClusterKey = tuple[str, str]
"""Namespace and name of a KafkaCluster, whether there is one or not."""

OBJECTS_MAX = 100_000
GONE_MAX = 10_000
"""Objects that are remembered to be gone, the newest: answers from before their deletion are on their way for a minute
at most."""


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
    objects_max: int = OBJECTS_MAX
    gone_max: int = GONE_MAX
    omitted: int = 0  # how often an object was left out, as there are more than `objects_max`
    _known: dict[Key, Document] = field(default_factory=dict)
    keys: dict[ClusterKey, set[Key]] = field(default_factory=dict)
    stamps: dict[ClusterKey, int] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _gone: dict[str, None] = field(default_factory=dict)  # by uid, which no other object ever has
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
            if _uid(document) in self._gone or (before is not None and not _is_newer(document, before)):
                return
            if before is None and len(self._known) >= self.objects_max:
                self.omitted += 1
                return
            self._known[key] = _lean(document)
            moved = {cluster} | ({cluster_of(before)} if before is not None else set())
            self.keys.setdefault(cluster, set()).add(key)
            woken = moved if before is None or _wanted(before) != _wanted(document) else set()
            self._count(woken)
            for former in moved - {cluster}:
                self._leave(former, key)
        self._wake(woken)

    def drop(self, key: Key, uid: str) -> None:
        """Forget an object that is gone, unless another of its name has come meanwhile."""
        with self._lock:
            self._bury(uid)
            known = self._known.get(key)
            if known is None or _uid(known) != uid:
                return
            cluster = cluster_of(self._known.pop(key))
            self._count({cluster})
            self._leave(cluster, key)
        self._wake({cluster})

    def keep_only(self, kind: str, namespace: str | None, uids: Iterable[str], version: str) -> None:
        """Forget the objects of a kind (in a namespace) that a list of this version lacks; younger ones stay."""
        there = set(uids)
        with self._lock:
            gone = [
                (key, _uid(known))
                for key, known in self._known.items()
                if key[0] == kind
                and namespace in {None, key[1]}
                and _uid(known) not in there
                and version_of(known) <= _number(version)
            ]
        for key, uid in gone:
            self.drop(key, uid)

    def of(self, cluster: ClusterKey) -> list[Document]:
        """The objects that are about a cluster, the KafkaCluster first, then by name."""
        with self._lock:
            return [self._known[key] for key in sorted(self.keys.get(cluster, ()), key=_order)]

    def every(self) -> list[Document]:
        """All objects, in no order."""
        with self._lock:
            return list(self._known.values())

    def version(self, key: Key) -> int:
        """The version of an object that is known; 0 where none is."""
        with self._lock:
            return version_of(self._known.get(key, {}))

    def stamp(self, cluster: ClusterKey) -> int:
        """A number that grows whenever something that is wanted of a cluster changes; 0 while nothing is."""
        with self._lock:
            return self.stamps.get(cluster, 0)

    def has_cluster(self, cluster: ClusterKey) -> bool:
        """Whether there is the KafkaCluster itself."""
        with self._lock:
            return ("KafkaCluster", *cluster) in self._known

    def clusters(self) -> list[ClusterKey]:
        """Every cluster that an object is about."""
        with self._lock:
            return sorted(self.keys)

    def _count(self, clusters: Iterable[ClusterKey]) -> None:
        for cluster in clusters:
            self.stamps[cluster] = next(self._numbers)

    def _leave(self, cluster: ClusterKey, key: Key) -> None:
        """Note that an object is no longer about a cluster; of one that nothing is about, nothing is kept."""
        self.keys[cluster].discard(key)
        if not self.keys[cluster]:
            del self.keys[cluster], self.stamps[cluster]

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > self.gone_max:
            del self._gone[next(iter(self._gone))]

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
    return _uid(document) != _uid(known) or version_of(document) > version_of(known)


def _uid(document: Mapping[str, Any]) -> str:
    return str(part(document, "metadata").get("uid"))


def version_of(document: Mapping[str, Any]) -> int:
    """The resource version of an object; 0 where it has none."""
    return _number(part(document, "metadata").get("resourceVersion"))


def _number(version: object) -> int:
    """The resource version as the number that it is, and that may be compared within one kind (KEP-5504)."""
    return int(str(version)) if str(version).isdecimal() else 0
