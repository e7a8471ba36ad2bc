"""The certificates of a secured cluster of this machine: files in its directory, which this user alone can read.

certificates/
    ca.crt            who signs the brokers' certificates: what clients have to trust
    authority.json    its key, and those of its renewal
    operator/         the certificate by which the operator and the command are known, and client.properties for
                      Kafka's tools
    node-0/...        what a node reads
"""

import json
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kavka_broker.core.config.properties import format_properties
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import Security, no_passphrase
from kavka_operator.platform.external import SecretError
from kavka_operator.platform.local import probe
from kavka_operator.platform.local.access import AUTHORITY_FILE, OPERATOR_FILE, CertificatesError
from kavka_operator.platform.local.files import read_text, write_secret
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import HOST
from kavka_operator.platform.local.secrets import read_secret

if TYPE_CHECKING:
    from kavka_operator.platform.certificates.maintenance import Kept, Place

LACKING = (
    "TLS, logins and ACLs need more than is installed: pip install 'kavka[tls]' brings what draws their certificates"
)
LOCAL_NAMES = ("localhost", HOST, "::1")
PROPERTIES_FILE, KEPT_FILE = "client.properties", "authority.json"

Address = tuple[str, int]
Names = Mapping[int, Iterable[str]]


def keep(cluster: KafkaCluster, layout: Layout, names: Names, running: Iterable[Address], now: datetime) -> "Kept":
    """Draw and write what is lacking or near its end. `names` are the hosts of each node, `running` addresses of nodes.

    Raises CertificatesError.
    """
    try:
        from kavka_operator.platform.certificates import bundles, maintenance
    except ImportError as error:
        raise CertificatesError(LACKING) from error

    def is_let_in(security: Security) -> bool:
        """Whether every node that runs answers who shows this."""
        from kavka_operator.kafka.connection import context_of

        context = context_of(security)
        return all(probe.answers(host, port, context=context) for host, port in running)

    try:
        listeners = bundles.of_listeners(cluster, lambda name: read_secret(layout, name))
        asked = maintenance.Round(cluster, names, listeners, LOCAL_NAMES, is_let_in, now)
        return maintenance.keep(asked, Directory(layout))
    except SecretError as error:
        raise CertificatesError(str(error)) from error


def context(layout: Layout) -> ssl.SSLContext:
    """The way in as a context of TLS. Raises OSError for files that are not there, or hold something else."""
    own = layout.certificates_of_operator
    made = ssl.create_default_context(cafile=own / AUTHORITY_FILE)
    made.load_cert_chain(own / OPERATOR_FILE, password=no_passphrase)
    return made


@dataclass(frozen=True, slots=True)
class Directory:
    """A `Shelf`: files of one user. Its methods raise CertificatesError for a file that is damaged, and OSError."""

    layout: Layout

    def read(self, place: "Place | int") -> Mapping[str, str]:
        """The texts that are kept."""
        if place == "authority":
            return self._authority()
        directory = self._of(place)
        paths = sorted(path for path in directory.iterdir() if path.is_file()) if directory.is_dir() else []
        return {path.name: read_text(path) or "" for path in paths if not path.name.startswith(".")}

    def write(self, place: "Place | int", texts: Mapping[str, str]) -> None:
        """Keep these texts, those of the authority in one file: so none of them is ever that of another step."""
        if place == "authority":
            self._put(self.layout.certificates, {KEPT_FILE: json.dumps(dict(texts), indent=2) + "\n"})
            return
        self._put(self._of(place), texts)
        if place == "operator":
            self._put(self._of(place), self._for_tools(texts))

    def _of(self, place: "Place | int") -> Path:
        """The directory of a node, of the operator, or of what is for clients."""
        if isinstance(place, int):
            return self.layout.certificates_of(place)
        return self.layout.certificates_of_operator if place == "operator" else self.layout.certificates

    def _authority(self) -> dict[str, str]:
        path = self.layout.certificates / KEPT_FILE
        try:
            return {str(name): str(text) for name, text in json.loads(read_text(path) or "{}").items()}
        except (ValueError, AttributeError) as error:
            words = f"{path} is damaged; put back a copy, or remove it: then clients need {AUTHORITY_FILE} again"
            raise CertificatesError(words) from error

    def _for_tools(self, texts: Mapping[str, str]) -> dict[str, str]:
        """The same in one file, and settings with which Kafka's tools are let in by it."""
        directory = self.layout.certificates_of_operator
        settings = {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / OPERATOR_FILE),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / AUTHORITY_FILE),
        }
        joined = f"{texts['tls.key'].strip()}\n{texts['tls.crt'].strip()}\n"
        return {OPERATOR_FILE: joined, PROPERTIES_FILE: format_properties(settings)}

    @staticmethod
    def _put(directory: Path, texts: Mapping[str, str]) -> None:
        """Write what is not as it should be, and leave alone what stands beside it."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in texts.items():
            if read_text(directory / name) != text:
                write_secret(directory / name, text)
