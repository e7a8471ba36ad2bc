"""The certificates of a secured cluster as Secrets: one for clients, the operator's own, the authority's, one a node.

They are asked for by name and never listed. A pod mounts that of its node as a directory, in which Kubernetes shows
what has changed; brokers look there, so nothing is restarted. The KafkaCluster owns them, and they go with it.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.certificates import SeenCertificates
from kavka_operator.kafka.connection import context_of
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.certificates.bundles import of_listeners
from kavka_operator.platform.certificates.maintenance import Kept, Place, Round, keep
from kavka_operator.platform.external import SecretError
from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Bridge, Document
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.platform.kubernetes.live.secrets import FORBIDDEN, read_secret
from kavka_operator.platform.kubernetes.objects import manifests
from kavka_operator.platform.kubernetes.objects.names import (
    certificates_secret,
    name_of,
    node_labels,
    node_name,
    place_secret,
)
from kavka_operator.platform.kubernetes.objects.settings import Layout
from kavka_operator.platform.kubernetes.observe import listeners, services
from kavka_operator.platform.kubernetes.observe.node_objects import Known
from kavka_operator.platform.local.probe import answers

KEPT_SECONDS_MAX = 60.0
"""How long what was kept is believed, where nothing that it follows from has changed."""

Put = Callable[[KafkaCluster, Document, Mapping[str, Any] | None], Document]
Answers = Callable[[str, int, Security], bool]
Names = Mapping[int, Iterable[str] | None]


def answers_by_tls(host: str, port: int, security: Security) -> bool:
    """Whether a broker answers who shows this."""
    return answers(host, port, context=context_of(security))


@dataclass(slots=True)
class Certified:
    """Keeps the certificates of one cluster. `put` applies an object, unless one of its name is another's."""

    key: ClusterKey
    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    put: Put
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    answers: Answers = answers_by_tls
    _kept: tuple[object, float, Kept] | None = field(default=None)

    @property
    def security(self) -> Security:
        """The operator's way in."""
        return self._kept[2].security if self._kept is not None else OPEN

    @property
    def seen(self) -> SeenCertificates | None:
        """The certificates as they are; None of a cluster that is not secured."""
        return self._kept[2].seen if self._kept is not None else None

    def problems(
        self, cluster: KafkaCluster, layouts: Mapping[int, Layout], known: Known, running: list[int]
    ) -> list[str]:
        """Keep what a secured cluster needs in force; the reasons why that cannot be. Raises ApiError."""
        if not cluster.spec.is_secured:
            return []
        try:
            self._keep(cluster, layouts, known, running)
        except PlatformUnavailableError as error:
            return [str(error)]
        return []

    def _keep(self, cluster: KafkaCluster, layouts: Mapping[int, Layout], known: Known, running: list[int]) -> None:
        """Keep them, unless that was done a moment ago."""
        hosts = {number: services.hosts(layout, known) for number, layout in layouts.items()}
        names: Names = {**dict.fromkeys(known.sets), **hosts}  # those that leave are reached until they have gone
        asked = (cluster.spec, names, cluster.metadata.uid)
        if self._kept is not None and self._kept[0] == asked and self.clock() < self._kept[1] + KEPT_SECONDS_MAX:
            return
        brokers = [layouts[number] for number in running if number in layouts and layouts[number].node.is_broker]
        addresses = [listeners.bootstrap(known, layout) for layout in brokers]
        kept = self._kept_now(cluster, Secrets(self, cluster, layouts, known), names, addresses)
        self._kept = asked, self.clock(), kept

    def _kept_now(self, cluster: KafkaCluster, shelf: "Secrets", names: Names, brokers: list[str]) -> Kept:
        def is_let_in(security: Security) -> bool:
            """Whether every broker that runs answers who shows this. Controllers alone are reached by nodes only."""
            places = [address.rpartition(":") for address in brokers]
            return all(self.answers(host, int(port), security) for host, _, port in places)

        try:
            of_clients = of_listeners(cluster, lambda name: read_secret(self.api, self.bridge, self.key[0], name))
            asked = Round(cluster, names, of_clients, (), is_let_in, self.now())
            return keep(asked, shelf)
        except SecretError as error:
            raise PlatformUnavailableError(str(error)) from error
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            words = f"the operator may not keep certificates in Secrets of namespace {self.key[0]!r}"
            remedy = f"let it, as the chart does with securedNamespaces: [{self.key[0]}]"
            raise PlatformUnavailableError(f"{words}; {remedy} ({error})") from error


@dataclass(slots=True)
class Secrets:
    """A `Shelf`: Secrets of a namespace. Its methods raise ApiError, and PlatformUnavailableError for another's."""

    keeper: Certified
    cluster: KafkaCluster
    layouts: Mapping[int, Layout]
    known: Known
    _seen: dict[str, Document | None] = field(default_factory=dict)

    def read(self, place: Place | int) -> Mapping[str, str]:
        """The texts that are kept, in a Secret that is the cluster's."""
        name = self._name(place)
        seen = self._seen[name] = self.keeper.bridge.wait(self.keeper.api.find("Secret", self.keeper.key[0], name))
        if seen is None or not manifests.is_ours(seen, self.cluster):
            return {}
        return {key: base64.b64decode(text).decode() for key, text in (seen.get("data") or {}).items()}

    def write(self, place: Place | int, texts: Mapping[str, str]) -> None:
        """Apply the Secret where it is not as it should be."""
        name = self._name(place)
        if name not in self._seen:
            self.read(place)
        seen = self._seen[name]
        manifest = manifests.secret(self.cluster, name, texts, self._labels(place))
        is_same = seen is not None and (seen.get("data") or {}) == manifest["data"]
        if seen is None or not is_same or not manifests.is_ours(seen, self.cluster):
            self._seen[name] = self.keeper.put(self.cluster, manifest, seen)

    def _name(self, place: Place | int) -> str:
        if not isinstance(place, int):
            return place_secret(self.cluster.metadata.name, place)
        layout = self.layouts.get(place)
        owner = node_name(layout.name, layout.node) if layout is not None else name_of(self.known.sets[place])
        return certificates_secret(owner)

    def _labels(self, place: Place | int) -> Mapping[str, str]:
        if not isinstance(place, int):
            return {}
        layout = self.layouts.get(place)
        if layout is not None:
            return node_labels(layout.name, layout.node)
        labels: Mapping[str, str] = self.known.sets[place]["metadata"].get("labels") or {}
        return labels
