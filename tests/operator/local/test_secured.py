"""A secured cluster as a person makes one: logins over TLS, ACLs, and certificates that are renewed under load.

What knocks on its door is librdkafka, and Apache Kafka's own tools.
"""

import json
import os
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from kavka_operator.platform.certificates.authority import is_signed_by, new_authority
from kavka_operator.platform.security import ORGANIZATION
from tests.operator.local.records import Writer, read_all
from tests.operator.local.support import Kavka, free_ports, wait_until
from tests.support.programs import kafka_tool

pytestmark = [pytest.mark.slow, pytest.mark.extended]

USER, PASSWORD = "alice", "correct horse"
PARTITIONS = 6


class Secured(Kavka):
    """The command with a cluster that asks for a login over TLS and has ACLs."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        (self.nodes_port,) = free_ports(1)
        self.access = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certificates / "ca.crt"),
        }

    @property
    def certificates(self) -> Path:
        return self.cluster / "certificates"

    def secured(self, config: str = "{}", brokers: int = 3) -> Path:
        """The resources, as a person writes them."""
        path = self.file(brokers=brokers, replicas=brokers, config=config)
        own = f"{{name: CLIENTS, port: {self.port}, protocol: SASL_SSL, sasl: {{mechanisms: [SCRAM-SHA-512]}}}}"
        nodes = f"    - {{name: NODES, port: {self.nodes_port}}}\n  authorization: {{}}\n"
        text = path.read_text().replace(f"{{name: PLAINTEXT, port: {self.port}}}", own)
        text = text.replace(f"port: {self.controller_port}}}\n", f"port: {self.controller_port}}}\n{nodes}")
        path.write_text(text)
        return path

    def as_operator(self) -> dict[str, Any]:
        """The operator's own way in, for librdkafka."""
        own = self.certificates / "operator"
        return {
            "bootstrap.servers": f"127.0.0.1:{self.nodes_port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(own / "ca.crt"),
            "ssl.certificate.location": str(own / "tls.crt"),
            "ssl.key.location": str(own / "tls.key"),
        }

    def add_user(self, topic: str = "flights") -> None:
        """A user that may write and read one topic."""
        admin = AdminClient(self.as_operator())
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        (done,) = admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(USER, info, PASSWORD.encode())]
        ).values()
        done.result(60)
        allowed = [
            (ResourceType.TOPIC, topic, AclOperation.WRITE),
            (ResourceType.TOPIC, topic, AclOperation.READ),
            (ResourceType.GROUP, "reader", AclOperation.READ),
        ]
        rules = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
            for kind, name, operation in allowed
        ]
        for future in admin.create_acls(rules).values():
            future.result(60)


@pytest.fixture
def kavka(tmp_path: Path) -> Iterator[Secured]:
    command = Secured(tmp_path)
    try:
        yield command
    finally:
        command.end()


@contextmanager
def writing(kavka: Secured) -> Iterator[Writer]:
    """A user produces meanwhile; at the end, all that was acknowledged is there, and nothing twice."""
    writer = Writer(kavka, "flights")
    writer.start()
    try:
        writer.wait_for_more(200)
        yield writer
        writer.wait_for_more(200)
    finally:
        writer.halt.set()
        writer.join()
    stored = read_all(kavka, "flights", PARTITIONS)
    assert len(stored) == len(set(stored)), "a record stands twice"
    assert set(writer.acknowledged) <= set(stored), "an acknowledged record is lost"


def until_refused(kavka: Secured, wanted: set[int], topic: str = "flights", **others: str) -> None:
    """Wait until somebody who wants to write is refused for one of these reasons; a broker may be slow besides."""
    found: list[KafkaError] = []
    settings = {"bootstrap.servers": kavka.bootstrap, **kavka.access, **others, "message.timeout.ms": 20_000}
    producer = Producer({**settings, "error_cb": found.append})
    producer.produce(topic, b"x", on_delivery=lambda error, _: found.append(error) if error else None)
    wait_until(lambda: producer.poll(0.1) >= 0 and any(error.code() in wanted for error in found), "it is refused")


def test_clients_log_in_and_nothing_is_lost_in_a_roll(kavka: Secured) -> None:
    kavka.up(kavka.secured())
    kavka.add_user()
    before = {node: kavka.pid(node) for node in range(3)}
    with writing(kavka):
        code, said = kavka.run("apply", "-f", str(kavka.secured("{queued.max.requests: 400}")))
        assert (code, "restart node" in said) == (0, True), said
        wait_until(lambda: all(kavka.pid(node) != pid for node, pid in before.items()), "all were restarted")
        wait_until(lambda: "rollout" not in kavka.status(), "the roll is over")
    until_refused(kavka, {KafkaError._AUTHENTICATION}, **{"sasl.password": "guessed"})
    until_refused(kavka, {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._UNKNOWN_TOPIC}, "others")
    status = kavka.status()
    (line,) = [line for line in status["listeners"] if line["name"] == "CLIENTS"]
    assert (line["protocol"], line["bootstrapServers"].split(",")[0]) == ("SASL_SSL", kavka.bootstrap)
    assert status["certificates"]["authorityEndTime"] > "2026"
    asked_of_a_running_cluster(kavka)
    no_key_is_told(kavka)


def asked_of_a_running_cluster(kavka: Secured) -> None:
    """Commands come by the operator's certificate."""
    for words in (["doctor"], ["explain", "quota", "--client-id", "backfill"], ["export", "--cluster", "quickstart"]):
        code, said = kavka.run(*words)
        assert code in {0, 1}, (words, said)
        assert "could not connect" not in said, (words, said)
        assert "clear-listener" not in said, "listeners are encrypted"
    code, said = kavka.run("plan", "-f", str(kavka.secured("{queued.max.requests: 500}")))
    assert (code, "restart" in said) == (2, True), said


def no_key_is_told(kavka: Secured) -> None:
    """No key or password stands anywhere, except in the files that are for it."""
    keys = [path.read_text() for path in kavka.certificates.rglob("*.pem")]
    secrets = {line for text in keys for line in text.split("-----BEGIN CERT")[0].splitlines()[1:-1] if line}
    assert secrets
    told = [path for path in kavka.directory.rglob("*") if path.is_file() and kavka.certificates not in path.parents]
    told = [path for path in told if "data" not in path.parts]
    assert len(told) > 5
    for path in told:
        text = path.read_text(errors="replace")
        assert not any(secret in text for secret in secrets), path
        assert PASSWORD not in text, path
        assert "PRIVATE KEY" not in text, path


@pytest.mark.java
def test_tools_of_apache_kafka_do_the_same(kavka: Secured) -> None:
    kavka.up(kavka.secured(brokers=1))
    at = ("--bootstrap-server", f"127.0.0.1:{kavka.nodes_port}")
    own = ("--command-config", str(kavka.certificates / "operator" / "client.properties"))
    user = f"SCRAM-SHA-512=[password={PASSWORD}]"
    kafka_tool(
        "configs", *at, *own, "--alter", *("--entity-type", "users", "--entity-name", USER), "--add-config", user
    )
    for role in (("--producer", "--topic", "flights"), ("--consumer", "--topic", "flights", "--group", "*")):
        kafka_tool("acls", *at, *own, "--add", "--allow-principal", f"User:{USER}", *role)
    client = kavka.directory / "client.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    client.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={kavka.certificates / 'ca.crt'}\n"
        f'sasl.jaas.config={module} required username="{USER}" password="{PASSWORD}";\n'
    )
    clients = ("--bootstrap-server", kavka.bootstrap)
    kafka_tool("console-producer", *clients, "--command-config", str(client), "--topic", "flights", stdin="a\nb\nc\n")
    said = kafka_tool(
        *("console-consumer", *clients, "--command-config", str(client), "--topic", "flights"),
        *("--from-beginning", "--max-messages", "3", "--timeout-ms", "90000"),
    )
    assert sorted(said.split()) == ["a", "b", "c"]
    assert "User:CN=operator,O=kavka.dev" not in kafka_tool("acls", *at, *own, "--list")


def authorities(kavka: Secured) -> list[str]:
    end = "-----END CERTIFICATE-----\n"
    return [part + end for part in (kavka.certificates / "ca.crt").read_text().split(end) if part.strip()]


def shown(kavka: Secured, address: str, trusted: Path) -> str:
    """The certificate that a broker shows who trusts these authorities. Raises ssl.SSLError where it is not taken."""
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port)), ca_certs=str(trusted))


def shows(kavka: Secured, address: str, trusted: Path, authority: str) -> bool:
    """Whether a broker shows a certificate that this authority has signed; not while it cannot be asked."""
    try:
        return is_signed_by(shown(kavka, address, trusted), authority)
    except OSError:
        return False


def change_authority(kavka: Secured, change: Callable[[dict[str, str]], None], is_seen: Callable[[], bool]) -> None:
    """Let what is kept of the authority be other than it was, until the operator has taken it over."""
    path = kavka.certificates / "authority.json"
    kept = json.loads(path.read_text())
    change(kept)

    def taken() -> bool:
        if is_seen():
            return True
        path.write_text(json.dumps(kept))  # again: a look that had begun before may have put back the former
        return False

    wait_until(taken, "the operator takes it over")


def aged(certificate: str, key: str, ends: datetime) -> str:
    """The same authority, which ends sooner."""
    former, signer = x509.load_pem_x509_certificate(certificate.encode()), load_pem_private_key(key.encode(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    builder = x509.CertificateBuilder().subject_name(former.subject).issuer_name(former.issuer)
    builder = builder.public_key(former.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(former.not_valid_before_utc).not_valid_after(ends)
    for one in former.extensions:
        builder = builder.add_extension(one.value, one.critical)
    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def test_certificates_and_their_authority_are_renewed_under_load(kavka: Secured) -> None:
    """A client that trusts both authorities, from when there were two, goes on while the one takes over from the other.

    Years pass at once: the second authority, and the end of the first, are put where the operator keeps them.
    """
    kavka.up(kavka.secured())
    kavka.add_user()
    before, (former,) = {node: kavka.pid(node) for node in range(3)}, authorities(kavka)
    now = datetime.now(UTC)
    following = new_authority("the next", ORGANIZATION, now, now + timedelta(days=1826))

    def is_announced(kept: dict[str, str]) -> None:
        kept |= {"next.crt": following.certificate, "next.key": following.key}

    change_authority(kavka, is_announced, lambda: len(authorities(kavka)) == 2)
    both = kavka.directory / "both.crt"
    both.write_text((kavka.certificates / "ca.crt").read_text())
    kavka.access["ssl.ca.location"] = str(both)
    wait_until(lambda: condition(kavka) == "BothTrusted", "it is told")
    first = [shown(kavka, address, both) for address in kavka.addresses()]
    assert all(is_signed_by(each, former) for each in first), "the former signs still"
    with writing(kavka) as writer:
        ends = datetime.now(UTC) + timedelta(seconds=45)

        def is_old(kept: dict[str, str]) -> None:
            kept["tls.crt"] = aged(kept["tls.crt"], kept["tls.key"], ends)

        change_authority(kavka, is_old, lambda: authorities(kavka)[0] == following.certificate)
        wait_until(
            lambda: all(shows(kavka, address, both, following.certificate) for address in kavka.addresses()),
            "each broker shows what the next authority has signed",
        )
        os.kill(kavka.pid(1), signal.SIGKILL)  # so that clients, and the other nodes, have to connect again
        wait_until(lambda: kavka.pid(1) != before[1], "it is started again")
        writer.wait_for_more(500)
        wait_until(lambda: authorities(kavka) == [following.certificate], "the former has ended")
        writer.wait_for_more(500)
    assert [kavka.pid(node) for node in (0, 2)] == [before[node] for node in (0, 2)], "no other was restarted"
    wait_until(lambda: condition(kavka) == "", "it is over")
    no_key_is_told(kavka)


def condition(kavka: Secured) -> str:
    """The reason of the condition while an authority is renewed."""
    found = [each for each in kavka.status()["conditions"] if each["type"] == "AuthorityRenewing"]
    return str(found[0]["reason"]) if found else ""
