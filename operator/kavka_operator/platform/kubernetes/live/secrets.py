"""Secrets that a KafkaCluster names, from its own namespace: asked for by name, never listed or watched.

The key of its audit trail is made here and never read: pods are given it by its name. So there is no right to read it,
and whether it is there shows when it is made again, which an API server refuses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.platform.external import SecretError
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.objects import manifests

FORBIDDEN = 403
KEY_BYTES = 32
KEPT_SECONDS = 600.0
"""How long a key that was there is believed to be there."""


@dataclass(slots=True)
class AuditKey:
    """The key that signs the audit trail of one cluster."""

    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    _seen_at: float | None = None

    def keep(self, cluster: KafkaCluster) -> None:
        """Make the Secret with the key, where the trail is wanted and there is none. Raises ApiError."""
        now = self.clock()
        if not cluster.spec.is_audited or (self._seen_at is not None and now - self._seen_at < KEPT_SECONDS):
            return
        try:
            self.bridge.wait(self.api.make(manifests.audit_key(cluster, token_hex(KEY_BYTES))))
        except ApiError as error:
            if error.status != CONFLICT:
                raise
        self._seen_at = now


def read_secret(api: Api, bridge: Bridge, namespace: str, name: str) -> dict[str, str]:
    """The texts of a Secret, by their keys. Raises SecretError."""
    try:
        return bridge.wait(api.secret(namespace, name))
    except ApiError as error:
        if error.status == GONE:
            raise SecretError(f'there is no Secret "{name}" in namespace "{namespace}"; make it') from error
        if error.status == FORBIDDEN:
            words = f'the operator may not read the Secret "{name}" in namespace "{namespace}"'
            remedy = f"let it get that by name, as the chart does with externalSecrets: {{{namespace}: [{name}]}}"
            raise SecretError(f"{words}; {remedy} ({error})") from error
        raise SecretError(f'the Secret "{name}" cannot be read: {error}') from error
