"""Where the handlers hand things in: every resource as last seen, and what to write back to each.

kopf calls a handler for each event of each object. The desk keeps the newest version of every object, brings the
cluster that an event belongs to, and gives back what has to change in that one object: nothing, when all is as it
should be. A finalizer of our own keeps a deleted topic or quota until the cluster has let go of it; it is released at
once when the KafkaCluster is gone, so that deleting a namespace never waits for brokers that are not there.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kavka_operator.api import GROUP
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.stored import UnreadableError, resource_from
from kavka_operator.api.topic import Topic
from kavka_operator.domain.plan import ElectLeaders, Plan, Word, dated, stalled, unknown
from kavka_operator.kafka.admin import Admin, AdminError
from kavka_operator.loop.converge import Outcome, converge
from kavka_operator.loop.mishaps import Mishaps
from kavka_operator.loop.seams import PlatformUnavailableError
from kavka_operator.platform.kubernetes import KubernetesPlatform
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile.status import cluster_status

log = logging.getLogger(__name__)

FINALIZER = f"{GROUP}/finalizer"
OBJECTS_MAX = 100_000

Change = dict[str, Any]
"""What to merge into the object: `status`, `metadata`, or nothing."""


@dataclass(slots=True)
class Desk:
    """The newest version of every object. `connect` makes an admin client for a bootstrap address."""

    platform: KubernetesPlatform
    connect: Callable[[str], Admin]
    _objects: dict[Key, AnyResource] = field(default_factory=dict)
    _admins: dict[str, Admin] = field(default_factory=dict)
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    _mishaps: Mishaps = field(default_factory=lambda: Mishaps(log.error))

    async def hand_in(self, body: Mapping[str, Any], *, gone: bool = False) -> Change:
        """The change to write back to an object, after doing what follows from its new version."""
        now = datetime.now(UTC).replace(microsecond=0)
        key = body["kind"], body["metadata"].get("namespace", "default"), body["metadata"]["name"]
        if gone:
            self._forget(key, body["metadata"].get("uid", ""))
            return {}
        try:
            resource = resource_from(body)
        except UnreadableError as error:
            self._objects.pop(key, None)
            return _refused(body, stalled("Invalid", str(error)), now)
        self._objects[key] = resource
        assert len(self._objects) <= OBJECTS_MAX, "more objects than this operator is made for"
        async with self._alone:
            try:
                if isinstance(resource, KafkaCluster):
                    return self._cluster(resource, now)
                return await self._of_cluster(resource, now)
            except Exception as error:  # noqa: BLE001 - it costs this object alone
                words = self._mishaps.note(key, error, now, resource.metadata.generation)
                return _difference(resource, _said(resource, words, now))

    def _forget(self, key: Key, uid: str) -> None:
        """Forget an object, unless a new object of its name has come meanwhile."""
        if key in self._objects and self._objects[key].metadata.uid == uid:
            del self._objects[key]

    def close(self) -> None:
        """Let go of every connection."""
        for admin in self._admins.values():
            admin.close()
        self._admins.clear()

    def _cluster(self, cluster: KafkaCluster, now: datetime) -> Change:
        if cluster.metadata.deletion_timestamp is not None:
            return {}
        nodes, seen = self.platform.wanted(cluster), self.platform.seen()
        plan = clusters.reconcile(cluster, nodes, seen, None, None, now)
        try:
            for action in plan.actions:
                assert not isinstance(action, ElectLeaders), "a roll needs a survey, and there is none here"
                self.platform.perform(action)
        except PlatformUnavailableError as error:
            plan = Plan(words=stalled("PlatformUnavailable", str(error)))
        return _difference(cluster, cluster_status(cluster, nodes, seen, None, plan, now).to_dict())

    async def _of_cluster(self, resource: Topic | ClientQuota, now: datetime) -> Change:
        """The change for a Topic or ClientQuota, which converges together with all others of its cluster."""
        is_deleted = resource.metadata.deletion_timestamp is not None
        cluster = self._objects.get(("KafkaCluster", resource.metadata.namespace, resource.spec.cluster_name))
        if is_deleted and (cluster is None or FINALIZER not in resource.metadata.finalizers):
            return _release(resource)
        assert cluster is None or isinstance(cluster, KafkaCluster)
        try:
            outcome = await asyncio.to_thread(self._converge, resource, cluster, now)
        except AdminError as error:
            words = unknown("ClusterUnavailable", str(error))
            return {} if is_deleted else _difference(resource, _said(resource, words, now)) | _hold(resource)
        if key_of(resource) in outcome.released:
            return _release(resource)
        return _difference(resource, outcome.statuses[key_of(resource)].to_dict()) | _hold(resource)

    def _converge(self, resource: Topic | ClientQuota, cluster: KafkaCluster | None, now: datetime) -> Outcome:
        """Converge all topics and quotas of a cluster. Raises AdminError."""
        name = resource.spec.cluster_name
        if cluster is None:
            raise AdminError(f'there is no KafkaCluster "{name}" in namespace "{resource.metadata.namespace}"')
        address = cluster.status.bootstrap_servers
        if address is None:
            raise AdminError(f'KafkaCluster "{name}" has no address yet')
        admin = self._admins.get(address) or self._admins.setdefault(address, self.connect(address))
        siblings = [
            sibling
            for sibling in self._objects.values()
            if isinstance(sibling, Topic | ClientQuota)
            and sibling.spec.cluster_name == name
            and sibling.metadata.namespace == resource.metadata.namespace
        ]
        return converge(siblings, admin, now, mishaps=self._mishaps)


def _said(resource: AnyResource, words: tuple[Word, ...], now: datetime) -> dict[str, Any]:
    generation = resource.metadata.generation
    conditions = dated(words, resource.status.conditions, generation, now)
    return {
        **resource.status.to_dict(),
        "observedGeneration": generation,
        "conditions": [condition.to_dict() for condition in conditions],
    }


def _refused(body: Mapping[str, Any], words: tuple[Word, ...], now: datetime) -> Change:
    generation = body["metadata"].get("generation", 1)
    before = body.get("status", {}).get("conditions", ())
    if [(condition["type"], condition["message"]) for condition in before] == [
        (word.type, word.message) for word in words
    ]:
        return {}
    conditions = [condition.to_dict() for condition in dated(words, (), generation, now)]
    return {"status": {"observedGeneration": generation, "conditions": conditions}}


def _difference(resource: AnyResource, status: dict[str, Any]) -> Change:
    """The status if it says anything new. Fields that are no longer there are taken out by name, as a merge needs."""
    before = resource.status.to_dict()
    if status == before:
        return {}
    return {"status": {**dict.fromkeys(before.keys() - status.keys()), **status}}


def _hold(resource: Topic | ClientQuota) -> Change:
    held = resource.metadata.finalizers
    return {} if FINALIZER in held else {"metadata": {"finalizers": [*held, FINALIZER]}}


def _release(resource: Topic | ClientQuota) -> Change:
    held = resource.metadata.finalizers
    return (
        {"metadata": {"finalizers": [finalizer for finalizer in held if finalizer != FINALIZER]}}
        if FINALIZER in held
        else {}
    )
