"""The way into a secured cluster of this machine: the operator's certificate, and where nodes talk among themselves."""

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.security import NODES
from kavka_operator.domain.access import Security
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout

OPERATOR_FILE, AUTHORITY_FILE = "operator.pem", "ca.crt"


class CertificatesError(Exception):
    """There can be no certificates; the message says why, and what to do."""


def own_access(layout: Layout) -> Security:
    """The way in for a command: the operator's certificate. Raises CertificatesError."""
    directory = layout.certificates_of_operator
    text, trusted = read_text(directory / OPERATOR_FILE), read_text(directory / AUTHORITY_FILE)
    if not text or not trusted:
        raise CertificatesError(f"{directory} has no certificate of the operator; `kavka up` writes it")
    key, begin, certificate = text.partition("-----BEGIN CERTIFICATE-----")
    return Security(is_tls=True, is_own=True, authority=trusted, certificate=begin + certificate, key=key)


def addresses_among_nodes(layout: Layout) -> list[str]:
    """The addresses at which brokers that were started talk to each other."""
    texts = [read_text(layout.properties(number)) for number, _ in layout.pids()]
    urls = [url for text in texts for url in parse_properties(text or "").get("listeners", "").split(",")]
    return [url.removeprefix(f"{NODES}://") for url in urls if url.startswith(f"{NODES}://")]
