"""Secrets that a KafkaCluster names, from its own namespace: asked for by name, never listed or watched."""

from kavka_kubernetes.platform.api import GONE, Api, ApiError, Bridge
from kavka_operator.platform.external import SecretError

FORBIDDEN = 403


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
