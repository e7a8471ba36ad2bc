"""An API server in memory, with the controller that makes the pods of StatefulSets; nothing is scheduled or run there.

Applied objects replace what was applied before, which is enough where one manager writes all.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from copy import deepcopy
from itertools import count
from typing import Any, cast

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.plan import NodeAction, StartNode
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge, Document
from kavka_operator.platform.kubernetes.live.node_workloads import Hosted
from tests.unit.operator.fakes import cluster

RUNS = {"phase": "Running", "podIP": "10.1.0.7", "containerStatuses": [{"name": "broker", "started": True}]}
SIZED = {"volumes": [{"name": "data", "size": "1Gi"}]}


class Died(Exception):
    """The operator is gone."""


class FakeApi:
    """Objects by kind and name. `last` is the number of the last write before the operator dies."""

    def __init__(self) -> None:
        self.empties: set[str] = set()
        self.nodes: list[Document] = []
        self.rehearsed: list[Document] = []
        self.rejected: ApiError | None = None
        self.not_admitted: ApiError | None = None
        self.events: list[Document] = []
        self.objects: dict[tuple[str, str], Document] = {}
        self.writes: list[str] = []
        self.last: int | None = None
        self.resizes = True
        self.refuse: ApiError | None = None
        self.secrets: dict[str, dict[str, str]] = {}
        self.unreadable: ApiError | None = None
        self.is_slow = False  # the controller of StatefulSets hears of no template
        self.heard: dict[str, Document] = {}
        self.not_listed: set[str] = set()  # kinds that this operator has no right to list
        self._numbers = count(1)

    async def labelled(self, kind: str, namespace: str, labels: Mapping[str, str]) -> list[Document]:
        if kind in self.not_listed:
            raise ApiError(f'{kind} is forbidden: cannot list resource "{kind}"', 403)
        found = [document for (there, _), document in self.objects.items() if there == kind]
        return deepcopy([one for one in found if labels.items() <= one["metadata"].get("labels", {}).items()])

    async def find(self, kind: str, namespace: str, name: str) -> Document | None:
        if kind == "Secret" and self.unreadable is not None:
            raise self.unreadable
        return deepcopy(self.objects.get((kind, name)))

    async def secret(self, namespace: str, name: str) -> dict[str, str]:
        if name not in self.secrets:
            raise ApiError("not found", GONE)
        return dict(self.secrets[name])

    async def put(self, manifest: Document) -> Document:
        key = (manifest["kind"], manifest["metadata"]["name"])
        self._note(f"put {' '.join(key)}")
        before = self.objects.get(key)
        uid = manifest["metadata"].get("uid")
        if uid is not None and (before is None or before["metadata"]["uid"] != uid):
            raise ApiError("uid mismatch", CONFLICT)
        self.place({**deepcopy(manifest), "status": before.get("status", {}) if before else {}})
        self.control()
        return self.objects[key]

    async def make(self, manifest: Document) -> None:
        key = (manifest["kind"], manifest["metadata"]["name"])
        if key in self.objects:
            raise ApiError("is there", CONFLICT)
        self._note(f"make {' '.join(key)}")
        self.place(deepcopy(manifest))

    async def events_of(self, namespace: str, kind: str, reason: str) -> list[Document]:
        return self.events

    async def cordoned(self) -> set[str]:
        return self.empties

    async def machines(self) -> list[Document]:
        return self.nodes

    async def rehearse(self, manifest: Document) -> None:
        self.rehearsed.append(manifest)
        if self.rejected is not None:
            raise self.rejected

    async def rehearse_pod(self, pod: Document) -> None:
        if self.not_admitted is not None:
            raise self.not_admitted

    async def resizes_pods(self) -> bool:
        return self.resizes

    async def patch_pod(self, pod: Document, patch: Document, subresource: str = "") -> None:
        key = ("Pod", pod["metadata"]["name"])
        if subresource and self.rejected is not None:
            raise self.rejected
        self._note(f"{subresource or 'mark'} {' '.join(key)}")
        found = deepcopy(self.objects[key])
        found["metadata"]["annotations"] |= patch.get("metadata", {}).get("annotations", {})
        dropped = {gate["name"] for gate in patch.get("spec", {}).get("schedulingGates", ())}
        if dropped:
            gates = found["spec"]["schedulingGates"]
            found["spec"]["schedulingGates"] = [gate for gate in gates if gate["name"] not in dropped]
        for asked in patch.get("spec", {}).get("containers", ()):
            (container,) = found["spec"]["containers"]
            container["resources"] = asked["resources"]
        self.place(found)

    async def delete(self, document: Document) -> None:
        key = (document["kind"], document["metadata"]["name"])
        self._note(f"delete {' '.join(key)}")
        if key not in self.objects:
            raise ApiError("not found", GONE)
        if self.objects[key]["metadata"]["resourceVersion"] != document["metadata"]["resourceVersion"]:
            raise ApiError("changed", CONFLICT)
        del self.objects[key]
        self.control()

    def place(self, document: Document) -> None:
        """Put an object there, whoever does it."""
        key = (document["kind"], document["metadata"]["name"])
        before = self.objects.get(key)
        number = str(next(self._numbers))
        metadata = {**document["metadata"], "resourceVersion": number}
        metadata["uid"] = before["metadata"]["uid"] if before else f"uid-{number}"
        if key[0] == "StatefulSet":
            metadata["generation"] = generation_after(before, document)
        self.objects[key] = {**document, "metadata": metadata}

    def control(self) -> None:
        """Make the pods that StatefulSets lack; those of a StatefulSet that is gone go."""
        sets = {
            f"{name}-0": one
            for (kind, name), one in self.objects.items()
            if kind == "StatefulSet" and "template" in one["spec"]
        }
        for name, owner in sets.items():
            if not self.is_slow:
                self.heard[name] = deepcopy(owner["spec"]["template"])
                owner["status"] = {**owner.get("status", {}), "observedGeneration": owner["metadata"]["generation"]}
            if ("Pod", name) not in self.objects and name in self.heard:
                template = deepcopy(self.heard[name])
                metadata = {**template["metadata"], "name": name, "namespace": "default"}
                self.place({"kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": {}})
        for kind, name in [key for key in self.objects if key[0] == "Pod" and key[1] not in sets]:
            del self.objects[kind, name]

    def say(self, name: str, **status: Any) -> None:
        """Let a pod have a status."""
        self.place({**self.objects["Pod", name], "status": status})

    def names(self, kind: str) -> list[str]:
        return sorted(name for there, name in self.objects if there == kind)

    def one(self, kind: str, name: str) -> Document:
        return self.objects[kind, name]

    def _note(self, write: str) -> None:
        if self.refuse is not None:
            raise self.refuse
        if self.last is not None and len(self.writes) >= self.last:
            raise Died
        self.writes.append(write)


def generation_after(before: Document | None, now: Document) -> int:
    """The generation of an object that is written: one more than before where its spec is another."""
    if before is None:
        return 1
    generation: int = before["metadata"]["generation"]
    return generation if before["spec"] == now["spec"] else generation + 1


class Here:
    """A `Bridge` that runs each coroutine on the spot."""

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)


class Scene:
    """A cluster on an API server in memory. Everything is heard of at once, and ids count up."""

    def __init__(self, wanted: KafkaCluster | None = None) -> None:
        self.api = FakeApi()
        self.wanted = wanted or main()
        self.drawn = count(1)
        self.heard = count(1)
        self.sees_machines = True
        self.seconds = 0.0
        self.audit_image: str | None = "kavka/audit:1"
        self.host = self.begin()

    def begin(self, image: str | None = "kavka/broker:1") -> Hosted:
        """An operator that knows nothing yet."""
        self.host = Hosted(
            ("default", "main"),
            cast("Api", self.api),
            cast("Bridge", Here()),
            image,
            lambda: next(self.heard),
            lambda: self.seconds,
            lambda: f"id{next(self.drawn):020}",
            sees_machines=self.sees_machines,
            audit_image=self.audit_image,
        )
        return self.host

    def look(self) -> View:
        return self.host.look(self.wanted)

    def do(self, *actions: NodeAction) -> None:
        for action in actions:
            self.host.perform(action)

    def start(self) -> View:
        """Start every node, and let its pod run."""
        view = self.look()
        self.do(*(StartNode(node.id) for node in view.wanted))
        self.run()
        return self.look()

    def run(self) -> None:
        """Let every pod run."""
        for name in self.api.names("Pod"):
            self.api.say(name, **RUNS)

    def arguments(self, number: int) -> list[str]:
        """What a node's volumes are formatted with."""
        (container,) = self.api.one("StatefulSet", f"main-nodes-{number}")["spec"]["template"]["spec"]["initContainers"]
        found: list[str] = container["args"]
        return found


def main(
    replicas: int = 3,
    uid: str = "u1",
    status: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> KafkaCluster:
    """A KafkaCluster of three nodes that can run as pods."""
    pools = spec.pop("nodePools", [{"name": "nodes", "replicas": replicas, "storage": SIZED}])
    found = cluster(metadata={"uid": uid, "annotations": dict(annotations or {})}, nodePools=pools, **spec)
    return found if status is None else found.replaced({"status": found.status.replaced(dict(status))})
