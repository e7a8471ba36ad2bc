"""The files of a node in a secured cluster: a key with its certificate in one, and those that come from Secrets.

Each file is one that a broker reads as a whole, so that a key is never met with another's certificate.
"""

from collections.abc import Iterator

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import Security
from kavka_operator.platform.certificates.authority import Pair
from kavka_operator.platform.external import ReadSecret, SecretError
from kavka_operator.platform.security import client_listeners, wanted_secrets

BEGINNING, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def joined(pair: Pair) -> str:
    """A key and its certificate as one text."""
    return f"{pair.key.strip()}\n{pair.certificate.strip()}\n"


def parted(text: str) -> Pair:
    """The key and the certificate of a text that `joined` has made; empty ones where it holds none."""
    key, begin, rest = text.partition(BEGINNING)
    certificate, end, _ = rest.partition(END)
    return Pair(f"{begin}{certificate}{end}\n" if end else "", key)


def of_listeners(cluster: KafkaCluster, read_secret: ReadSecret) -> dict[str, str]:
    """The files of listeners with certificates of their own. Raises SecretError: it names the field."""
    return {
        file: _texts(_field_of(cluster, name), name, keys, read_secret)
        for file, (name, keys) in wanted_secrets(cluster).items()
    }


def access(trusted: str, pair: Pair) -> Security:
    """The way in for the operator."""
    return Security(is_tls=True, is_own=True, authority=trusted, certificate=pair.certificate, key=pair.key)


def _texts(field: str, name: str, keys: tuple[str, ...], read_secret: ReadSecret) -> str:
    try:
        secret = read_secret(name)
    except SecretError as error:
        raise SecretError(f"{field}: {error}") from error
    if missing := [key for key in keys if not secret.get(key)]:
        raise SecretError(f'{field}: the Secret "{name}" has no {" and no ".join(missing)}; add it')
    return "".join(f"{secret[key].strip()}\n" for key in keys)


def _field_of(cluster: KafkaCluster, secret: str) -> str:
    """The field that names a Secret."""
    return next(field for field, name in _named(cluster) if name == secret)


def _named(cluster: KafkaCluster) -> Iterator[tuple[str, str]]:
    for listener in client_listeners(cluster):
        if listener.tls is not None and listener.tls.secret_ref is not None:
            yield f"spec.listeners[{listener.name}].tls.secretRef", listener.tls.secret_ref.name
        if listener.tls is not None and listener.tls.client_ca_secret is not None:
            yield f"spec.listeners[{listener.name}].tls.clientCaSecret", listener.tls.client_ca_secret.name
