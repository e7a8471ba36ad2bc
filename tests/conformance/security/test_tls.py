"""TLS: clients that we did not write speak it, by passwords or by certificates; those who do not are not served."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from kafka import KafkaProducer

from kavka_broker.net.acceptor import HANDSHAKES_MAX
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, MODULE, PASSWORDS, jaas
from tests.conformance.security.test_scram import MECHANISMS, PASSWORD, USER, give
from tests.conformance.security.test_scram import MODULE as SCRAM_MODULE
from tests.support.programs import kafka_tool
from tests.support.refusals import is_of_connection, refusals
from tests.support.secured import Certificates, certificates
from tests.support.servers import Server, free_port, is_apache_kafka, start_server
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

pytestmark = pytest.mark.java

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "MUTUAL": "SSL", "SASL": "SASL_SSL", "CONTROLLER": "PLAINTEXT"}
STALLED = 100


@dataclass(frozen=True, slots=True)
class Secured:
    """A broker with listeners of each kind, and the keys of its clients."""

    server: Server
    keys: Certificates
    ports: dict[str, int]

    def of_librdkafka(self, listener: str, **more: Any) -> dict[str, Any]:
        protocol = {"SSL": "SSL", "SASL_SSL": "SASL_SSL"}[PROTOCOLS[listener]]
        trusts = {"security.protocol": protocol, "ssl.ca.location": str(self.keys.directory / "ca.crt")}
        return {"bootstrap.servers": f"localhost:{self.ports[listener]}", "log_level": 0, **trusts, **more}

    @property
    def certificate(self) -> dict[str, str]:
        """What a client needs to show who it is."""
        files = {"certificate": "client.crt", "key": "client.key"}
        return {f"ssl.{name}.location": str(self.keys.directory / file) for name, file in files.items()}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("tls")
    keys, ports = certificates(directory / "keys"), {name: free_port() for name in PROTOCOLS}
    hosts = {name: "localhost" if "SSL" in kind else "127.0.0.1" for name, kind in PROTOCOLS.items()}
    users = jaas(**{f"user_{name}": password for name, password in PASSWORDS.items()})
    settings = {
        "listeners": ",".join(f"{name}://{hosts[name]}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in PROTOCOLS.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.directory / "ca.crt"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1-of-tls/U,DEFAULT",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
        **{f"listener.name.sasl.{name.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in MECHANISMS},
        "listener.name.sasl.plain.sasl.jaas.config": users.replace("\\", "\\\\"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
    }
    server = start_server(directory / "broker", settings)
    for mechanism in MECHANISMS:
        give(server, USER, f"{mechanism}=[password={PASSWORD}]")
    yield Secured(server, keys, ports)
    server.kill()


def test_librdkafka_produces_and_consumes_what_takes_many_frames(secured: Secured, name: str) -> None:
    create_topic(secured.server, name)
    records = [bytes([number % 251]) * 50_000 for number in range(200)]
    producer = Producer(secured.of_librdkafka("TLS", **{"enable.idempotence": True}))
    for record in records:
        producer.produce(name, record)
        producer.poll(0)
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    consumer = Consumer(secured.of_librdkafka("TLS", **{"group.id": name, "auto.offset.reset": "earliest"}))
    consumer.subscribe([name])
    read = list[bytes]()
    while len(read) < len(records):
        found = consumer.consume(len(records) - len(read), ANSWER_SECONDS_MAX)
        assert found, f"{len(read)} read"
        read += [message.value() or b"" for message in found]
    consumer.close()
    assert read == records


@pytest.mark.parametrize("mechanism", ["PLAIN", *MECHANISMS])
def test_a_password_logs_in_over_tls(secured: Secured, name: str, tmp_path: Path, mechanism: str) -> None:
    """librdkafka, kafka-python and Kafka's own tools."""
    create_topic(secured.server, name)
    user, password = ("alice", PASSWORDS["alice"]) if mechanism == "PLAIN" else (USER, PASSWORD)
    login = {"sasl.mechanisms": mechanism, "sasl.username": user, "sasl.password": password}
    producer = Producer(secured.of_librdkafka("SASL", **login))
    producer.produce(name, b"x")
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    other = KafkaProducer(
        bootstrap_servers=f"localhost:{secured.ports['SASL']}",
        security_protocol="SASL_SSL",
        ssl_cafile=str(secured.keys.directory / "ca.crt"),
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
    )
    assert other.send(name, b"x").get(ANSWER_SECONDS_MAX).offset == 1
    other.close()
    client = tmp_path / "client.properties"
    words = jaas(username=user, password=password)
    client.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={words if mechanism == 'PLAIN' else words.replace(MODULE, SCRAM_MODULE)}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.keys.directory / 'ca.crt'}\n"
    )
    address = ("--bootstrap-server", f"localhost:{secured.ports['SASL']}", "--command-config", str(client))
    assert name in kafka_tool("topics", *address, "--list").split()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_of_scram_is_not_let_in_over_tls(secured: Secured, mechanism: str) -> None:
    login = {"sasl.mechanisms": mechanism, "sasl.username": USER, "sasl.password": "another"}
    assert refusals(secured.of_librdkafka("SASL", **login))


def test_a_certificate_is_a_user_by_the_rules_of_its_listener(secured: Secured, name: str) -> None:
    create_topic(secured.server, name)
    rule = ("--add", "--allow-principal", "User:CLIENT-OF-TLS", "--operation", "Describe", "--topic", name)
    kafka_tool("acls", "--bootstrap-server", secured.server.bootstrap, *rule)
    admin = AdminClient(secured.of_librdkafka("MUTUAL", **secured.certificate))
    seen = {topic for topic in admin.list_topics(timeout=ANSWER_SECONDS_MAX).topics if not topic.startswith("__")}
    assert seen == {name}, "what this user may see, of all topics"


def test_who_shows_no_certificate_is_not_let_in_where_one_is_required(secured: Secured) -> None:
    assert refusals(secured.of_librdkafka("MUTUAL"), is_of_connection)


def test_who_shows_a_certificate_of_another_authority_is_not_let_in(secured: Secured, tmp_path: Path) -> None:
    foreign = certificates(tmp_path / "foreign").directory
    theirs = {"ssl.certificate.location": str(foreign / "client.crt"), "ssl.key.location": str(foreign / "client.key")}
    assert refusals(secured.of_librdkafka("MUTUAL", **theirs), is_of_connection)


DAY = timedelta(days=1)
WRONG: dict[str, tuple[timedelta, timedelta, x509.ObjectIdentifier | None, str]] = {
    "of yesterday": (-2 * DAY, -DAY, None, "ca"),
    "of tomorrow": (DAY, 2 * DAY, None, "ca"),
    "of another purpose": (-DAY, DAY, ExtendedKeyUsageOID.SERVER_AUTH, "ca"),
    "signed by a client": (-DAY, DAY, None, "client"),
}
"""Of certificates for the client's key: from when, until when, for what if not for all, and who signs."""


@pytest.mark.parametrize("wrong", WRONG)
def test_who_shows_a_certificate_that_does_not_hold_is_not_let_in(secured: Secured, wrong: str) -> None:
    """The right one lets in what is made in the same way, and so do the moment, the purpose and who signed."""
    right = (-DAY, DAY, ExtendedKeyUsageOID.CLIENT_AUTH, "ca")
    sign(secured, "right.crt", *right)
    sign(secured, "wrong.crt", *WRONG[wrong])
    assert is_let_in(secured, "right.crt")
    assert not is_let_in(secured, "wrong.crt")
    assert is_let_in(secured, "right.crt")


def sign(
    secured: Secured, name: str, begin: timedelta, end: timedelta, purpose: x509.ObjectIdentifier | None, by: str
) -> None:
    """Draw a certificate for the client's key, and write it with that of its signer where it is no authority."""
    place, now = secured.keys.directory, datetime.now(UTC)
    key = load_pem_private_key((place / "client.key").read_bytes(), None)
    signer = x509.load_pem_x509_certificate((place / f"{by}.crt").read_bytes())
    signing = load_pem_private_key((place / f"{by}.key").read_bytes(), None)
    assert isinstance(key, RSAPrivateKey)
    assert isinstance(signing, RSAPrivateKey)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")]))
        .issuer_name(signer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begin)
        .not_valid_after(now + end)
    )
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    text = builder.sign(signing, SHA256()).public_bytes(Encoding.PEM)
    chain = b"" if by == "ca" else (place / f"{by}.crt").read_bytes()
    (place / name).write_bytes(text + chain)


def is_let_in(secured: Secured, certificate: str) -> bool:
    """Whether a client with this certificate is served where one is required."""
    shown = {**secured.certificate, "ssl.certificate.location": str(secured.keys.directory / certificate)}
    return not refusals(secured.of_librdkafka("MUTUAL", **shown), is_of_connection)


@pytest.mark.parametrize(
    ("version", "is_let_in"),
    [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_older_versions_of_tls_are_refused(secured: Secured, version: ssl.TLSVersion, is_let_in: bool) -> None:
    context = ssl.create_default_context(cafile=str(secured.keys.directory / "ca.crt"))
    context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("localhost", secured.ports["TLS"]), ANSWER_SECONDS_MAX) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
                assert is_let_in, wrapped.version()
        except (ssl.SSLError, ConnectionResetError):
            assert not is_let_in


def test_handshakes_that_stall_and_bytes_that_are_none_hinder_nobody(secured: Secured) -> None:
    address = ("localhost", secured.ports["TLS"])
    with ExitStack() as stack:
        for number in range(STALLED):
            stalled = stack.enter_context(closing(socket.create_connection(address, ANSWER_SECONDS_MAX)))
            stalled.sendall(b"\x16\x03\x01" if number % 2 else b"GET / HTTP/1.1\r\n\r\n")
        admin = AdminClient(secured.of_librdkafka("TLS"))
        assert admin.list_topics(timeout=ANSWER_SECONDS_MAX).brokers


@pytest.mark.skipif(is_apache_kafka(), reason="the bound is our own")
def test_of_a_flood_of_handshakes_the_oldest_are_given_up_and_a_client_is_served(secured: Secured) -> None:
    address = ("localhost", secured.ports["TLS"])
    with ExitStack() as stack:
        flood = [
            stack.enter_context(closing(socket.create_connection(address, ANSWER_SECONDS_MAX)))
            for _ in range(HANDSHAKES_MAX + STALLED)
        ]
        assert flood[0].recv(1) == b"", "the oldest is given up"
        admin = AdminClient(secured.of_librdkafka("TLS"))
        assert admin.list_topics(timeout=ANSWER_SECONDS_MAX).brokers


def test_no_key_and_no_password_is_in_the_log(secured: Secured) -> None:
    text = Path(secured.server.log_path).read_text(errors="replace")
    assert "PRIVATE KEY" not in text
    assert not any(password in text for password in PASSWORDS.values())


@pytest.mark.skipif(is_apache_kafka(), reason="it reads files again when the keys are altered")
def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    """A file that cannot be used changes nothing; a connection that stands keeps what it has."""
    keys, port = certificates(tmp_path / "keys"), free_port()
    path = keys.directory / "used.pem"
    path.write_text(keys.text("broker.pem"))
    controller = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()},TLS://localhost:{port},CONTROLLER://{controller}",
        "controller.quorum.bootstrap.servers": controller,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
    }
    server = start_server(tmp_path / "broker", settings)
    try:
        context = ssl.create_default_context(cafile=str(keys.directory / "ca.crt"))
        with context.wrap_socket(socket.create_connection(("localhost", port)), server_hostname="localhost") as stands:
            assert shown(stands) == "broker"
            path.write_text("no certificate")
            until_outside(lambda: "certificate.refused" in server.log_path.read_text())
            assert shown_at(context, port) == "broker"
            path.write_text(keys.text("client.key") + keys.text("client.crt"))
            until_outside(lambda: shown_at(context, port) == "client")
            stands.sendall(bytes.fromhex("0000000a0012000000000007ffff"))
            assert stands.recv(4), "the connection that stood is served on"
    finally:
        server.kill()


def shown_at(context: ssl.SSLContext, port: int) -> str:
    with context.wrap_socket(socket.create_connection(("localhost", port)), server_hostname="localhost") as opened:
        return shown(opened)


def shown(connection: ssl.SSLSocket) -> str:
    """The common name of the certificate that the broker shows."""
    found = connection.getpeercert()
    assert found
    return str(found["subject"][0][0][1])
