"""A `Platform` for clusters that somebody else runs: their addresses, and what stands in Secrets to be let in.

Secrets are read again every few seconds, so that a changed password is used soon; nothing of them is kept elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.external import External
from kavka_operator.domain.access import Security
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.plan import NodeAction
from kavka_operator.loop.interfaces import Platform, PlatformUnavailableError

SECRETS_SECONDS = 4.0  # less than a look is after the last

Secret = Mapping[str, str]
ReadSecret = Callable[[str], Secret]
"""The texts of a Secret by its name. Raises SecretError."""


class SecretError(Exception):
    """A Secret is not there, or cannot be read; the message says where it was looked for."""


@dataclass(slots=True)
class ExternalPlatform:
    """The `Platform` of one cluster, which may be external: otherwise it is what `nodes` says."""

    nodes: Platform
    read_secret: ReadSecret
    clock: Callable[[], float]
    _read: tuple[External, float, View] | None = field(default=None)

    def look(self, cluster: KafkaCluster) -> View:
        """The addresses of an external cluster and what its brokers ask for; otherwise the nodes."""
        external = cluster.spec.external
        if external is None:
            return self.nodes.look(cluster)
        if self._read is None or self._read[0] != external or self.clock() >= self._read[1] + SECRETS_SECONDS:
            self._read = external, self.clock(), self._view(external)
        return self._read[2]

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        """Let others take these nodes of ours away; whether that has changed. Raises PlatformUnavailableError."""
        return cluster.spec.external is None and self.nodes.allow(cluster, nodes)

    def perform(self, action: NodeAction) -> None:
        """Begin an action on a node of ours. Raises PlatformUnavailableError."""
        if self._read is not None:
            raise PlatformUnavailableError(f"cannot {action}: somebody else runs the nodes of this cluster")
        self.nodes.perform(action)

    def _view(self, external: External) -> View:
        try:
            return View(bootstrap=external.bootstrap_servers, security=security_of(external, self.read_secret))
        except SecretError as error:
            return View(lacking=str(error), stamp=str(error))


def security_of(external: External, read_secret: ReadSecret) -> Security:
    """Security that the brokers ask for, out of the Secrets that are named. Raises SecretError: it names the field."""
    found: dict[str, Any] = {}
    if external.tls is not None and external.tls.ca_secret is not None:
        secret = external.tls.ca_secret
        found |= _texts("tls.caSecret", secret.name, {"authority": secret.key}, read_secret)
    if external.tls is not None and external.tls.client_secret is not None:
        keys = {"certificate": "tls.crt", "key": "tls.key"}
        found |= _texts("tls.clientSecret", external.tls.client_secret.name, keys, read_secret)
    if external.sasl is not None:
        keys = {"username": "username", "password": "password"}
        found |= _texts("sasl.secretRef", external.sasl.secret_ref.name, keys, read_secret)
    mechanism = external.sasl.mechanism if external.sasl is not None else None
    return Security(is_tls=external.tls is not None, mechanism=mechanism, **found)


def _texts(field: str, name: str, keys: Mapping[str, str], read_secret: ReadSecret) -> dict[str, str]:
    try:
        secret = read_secret(name)
    except SecretError as error:
        raise SecretError(f"spec.external.{field}: {error}") from error
    if missing := [key for key in keys.values() if not secret.get(key)]:
        raise SecretError(f'spec.external.{field}: the Secret "{name}" has no {" and no ".join(missing)}; add it')
    return {field: secret[key] for field, key in keys.items()}
