"""The operator's own process, for brokers that run already: `tests/kube/forks.py` starts it.

Every write is told on a line, to the API server and to Kafka alike; after the Nth of them the process dies on the spot.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import Key
from kavka_operator.domain.access import OPEN
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import SeenNode, WantedNode
from kavka_operator.domain.plan import KafkaAction, NodeAction
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.loop.interfaces import Platform
from kavka_operator.platform.kubernetes.live.api import Api, Document
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.process import logs, operator

DIED = 9
OF_PODS = ("pods", "plain")
"""The clusters whose nodes are pods."""
NODE = "KAVKA_TEST_NODE"
"""The id of the one broker that runs elsewhere; 1 is what `tests.support.servers` calls it by itself."""


@dataclass(slots=True)
class Writes:
    """Counts the writes, and dies after the last that it may do."""

    last: int | None
    count: int = field(default=0)

    def note(self, what: object) -> None:
        self.count += 1
        print(f"write {self.count}: {what}", flush=True)
        if self.count == self.last:
            os._exit(DIED)


@dataclass(frozen=True, slots=True)
class CountedApi(Api):
    """Tells of each write to the API server."""

    writes: Writes = field(default_factory=lambda: Writes(None))

    async def apply(self, key: Key, uid: str, parts: Mapping[str, Any], subresource: str = "") -> Document:
        answer = await Api.apply(self, key, uid, parts, subresource)
        self.writes.note(f"{key[0]} {key[2]} {subresource}".strip())
        return answer

    async def put(self, manifest: Document) -> Document:
        answer = await Api.put(self, manifest)
        self.writes.note(f"{manifest['kind']} {manifest['metadata']['name']}")
        return answer

    async def make(self, manifest: Document) -> None:
        await Api.make(self, manifest)
        self.writes.note(f"{manifest['kind']} {manifest['metadata']['name']}")

    async def patch_pod(self, pod: Document, patch: Document, subresource: str = "") -> None:
        await Api.patch_pod(self, pod, patch, subresource)
        self.writes.note(f"Pod {pod['metadata']['name']} {subresource}".strip())

    async def keep_secret(self, secret: Document) -> Document:
        answer = await Api.keep_secret(self, secret)
        self.writes.note(f"Secret {secret['metadata']['name']}")
        return answer

    async def delete(self, document: Document) -> None:
        await Api.delete(self, document)
        self.writes.note(f"no {document['kind']} {document['metadata']['name']}")


class CountedKafka(KafkaClient):
    """Tells of each write to Kafka."""

    writes: Writes

    def _send(self, request: Any, node: int | None = None) -> Any:
        print(f"asked {type(request).__name__}", flush=True)
        return super()._send(request, node)

    def perform(self, action: KafkaAction) -> None:
        super().perform(action)
        self.writes.note(action)

    def perform_many(self, actions: Sequence[KafkaAction]) -> list[AdminError | None]:
        answer = super().perform_many(actions)
        self.writes.note("; ".join(map(str, actions)))
        return answer


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A `Platform` whose one node runs, whoever has started it."""

    bootstrap: str

    def look(self, cluster: KafkaCluster) -> View:
        node = int(os.environ.get(NODE, "1"))
        return View([WantedNode(node, "same")], {node: SeenNode(node, "Running", "same")}, bootstrap=self.bootstrap)

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        return False

    def perform(self, action: NodeAction) -> None:
        raise AssertionError(f"nothing to do for nodes that run: {action}")


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Nodes that are made as pods and run nowhere; brokers that run elsewhere answer for those that are said to run."""

    pods: Platform
    bootstrap: str

    def look(self, cluster: KafkaCluster) -> View:
        view = self.pods.look(cluster)
        wanted = [replace(node, controller=None) for node in view.wanted]  # the brokers elsewhere keep their voters
        at = self.bootstrap if view.bootstrap else ""
        return replace(view, wanted=wanted, bootstrap=at, metrics={}, security=OPEN)

    def perform(self, action: NodeAction) -> None:
        self.pods.perform(action)

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        return self.pods.allow(cluster, nodes)


def platform_of(key: ClusterKey, ground: operator.Ground, bootstrap: str) -> Platform:
    """Pods for the cluster of this name, and for any other the brokers that run already."""
    return Borrowed(operator.hosted(key, ground), bootstrap) if key[1] in OF_PODS else Elsewhere(bootstrap)


def main(bootstrap: str, last: int | None) -> None:
    """Run the operator until it is ended, or has done its last write."""
    writes = CountedKafka.writes = Writes(last)
    logs.to_stderr()
    options = operator.Options.of(dict(os.environ))
    work = operator.operate(
        options,
        lambda key, ground: platform_of(key, ground, bootstrap),
        CountedKafka,
        lambda client: CountedApi(client, writes=writes),
    )
    asyncio.run(work)
