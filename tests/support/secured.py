"""Apache Kafka that asks who its clients are: TLS, client certificates, passwords, and certificates for all of it."""

import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion

from tests.support.refusals import refusals
from tests.support.servers import Server, free_port, start_apache_kafka
from tests.support.waiting import until_outside

USER, PASSWORD = "kavka", "correct horse"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MODULES = "org.apache.kafka.common.security"
EXTERNAL = """\
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: quickstart}
spec:
  external:
    bootstrapServers: %s
    tls: {caSecret: {name: authority}}
    sasl: {mechanism: SCRAM-SHA-512, secretRef: {name: user}}
"""
"""A KafkaCluster that somebody else runs, with room for where clients begin; its Secrets are `authority` and `user`."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files: an authority, and what it has signed for the broker and for a client."""

    directory: Path

    def text(self, name: str) -> str:
        return (self.directory / name).read_text()


@dataclass(slots=True)
class Secured:
    """A broker with a listener of each kind."""

    server: Server
    certificates: Certificates
    ports: dict[str, int]

    def address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"


def certificates(directory: Path, names: str = "DNS:localhost") -> Certificates:
    """Draw keys and sign them, with openssl, for hosts of these names."""
    directory.mkdir(parents=True)
    _openssl(directory, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt")
    (directory / "names").write_text(f"subjectAltName={names}\n")
    for name in ("broker", "client"):
        _openssl(directory, f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr")
        signed = f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out {name}.crt"
        _openssl(directory, f"{signed} -extfile names")
    (directory / "broker.pem").write_text(
        (directory / "broker.key").read_text() + (directory / "broker.crt").read_text()
    )
    return Certificates(directory)


def _openssl(directory: Path, words: str) -> None:
    subprocess.run(["openssl", *words.split()], cwd=directory, check=True, capture_output=True)


def start_secured(directory: Path, more: Mapping[str, str] | None = None) -> Secured:
    """Apache Kafka with a listener of each kind, and a user that each of its mechanisms knows. `more` are settings."""
    signed = certificates(directory / "certificates")
    ports = {name: free_port() for name in ("PLAINTEXT", "TLS", "MUTUAL", "SASL", "CONTROLLER")}
    protocols = {"PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "MUTUAL": "SSL", "SASL": "SASL_SSL", "CONTROLLER": "PLAINTEXT"}
    hosts = {name: "localhost" if name in {"TLS", "MUTUAL", "SASL"} else "127.0.0.1" for name in ports}
    jaas = {
        "plain": f'{MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
    }
    settings = {
        "listeners": ",".join(f"{name}://{hosts[name]}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(signed.directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(signed.directory / "ca.crt"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.sasl.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.sasl.{name}.sasl.jaas.config": text for name, text in jaas.items()},
        **(more or {}),
    }
    secured = Secured(start_apache_kafka(directory / "broker", settings), signed, ports)
    for mechanism in MECHANISMS[1:]:
        set_scram(secured, mechanism, PASSWORD)
    return secured


def set_scram(secured: Secured, mechanism: str, password: str) -> None:
    """Give the user a password, for one mechanism, and wait until the broker knows it: what the controller has
    answered the listeners hear a moment later.
    """
    kind = ScramMechanism.SCRAM_SHA_256 if mechanism == "SCRAM-SHA-256" else ScramMechanism.SCRAM_SHA_512
    with closing(KafkaAdminClient(bootstrap_servers=secured.server.bootstrap)) as admin:
        answer = admin.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, kind, password)])
    assert answer == {USER: None}, answer
    known = {
        "bootstrap.servers": secured.address("SASL"),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(secured.certificates.directory / "ca.crt"),
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
    }
    until_outside(lambda: not refusals(known), what=f"{USER} is let in by {mechanism}")
