"""Logins and TLS handshakes are counted by listener, as they come out, with clients that we did not write."""

import socket
import ssl
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from tests.conformance.security.test_logins_agree import AUTHENTICATE, HANDSHAKE, METADATA, text, token
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, PASSWORDS, jaas, of_librdkafka
from tests.support.refusals import refusals
from tests.support.secured import Certificates, certificates
from tests.support.servers import Server, free_port, start_kavka
from tests.support.waiting import until_outside
from tests.support.wire import Connection

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "CLIENTS": "SASL_PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
PREFIX = "kafka_server_socket_server_metrics_"


@dataclass(frozen=True, slots=True)
class Watched:
    """A broker, its ports by listener, and the page with its figures."""

    server: Server
    keys: Certificates
    ports: dict[str, int]
    page: str

    def counted(self, listener: str) -> tuple[int, int]:
        """How many were let in by this listener since its start, and how many failed."""
        found = figures(self.page, listener)
        names = (f"{PREFIX}{result}_authentication_total" for result in ("successful", "failed"))
        successful, failed = (found[name] for name in names)
        return successful, failed

    def counted_at_last(self, listener: str) -> tuple[int, int]:
        """As `counted`, once every client has left: the broker hears of that a little later."""
        until_outside(lambda: figures(self.page, listener)["kavka_connections"] == 0)
        return self.counted(listener)


def figures(page: str, listener: str) -> dict[str, int]:
    """The figures of a listener on a broker's page, by name."""
    with urlopen(f"http://{page}/metrics", timeout=ANSWER_SECONDS_MAX) as answer:
        return {
            sample.name: int(sample.value)
            for family in text_string_to_metric_families(answer.read().decode())
            for sample in family.samples
            if sample.labels.get("listener") == listener
        }


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("counted")
    keys, ports = certificates(directory / "keys"), {name: free_port() for name in PROTOCOLS}
    page = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": ",".join(f"{name}://{address(name)}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in PROTOCOLS.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.directory / "broker.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": jaas(user_alice=PASSWORDS["alice"]),
        "kavka.admin.listener": page,
    }
    server = start_kavka(directory / "broker", settings)
    yield Watched(server, keys, ports, page)
    server.kill()


def address(listener: str) -> str:
    return "localhost" if listener == "TLS" else "127.0.0.1"


def test_logins_count_and_who_leaves_before_the_end_does_not(watched: Watched) -> None:
    port, plain = watched.ports["CLIENTS"], text("PLAIN")
    let_in, failed = watched.counted_at_last("CLIENTS")
    with Connection(("127.0.0.1", port)) as connection:
        assert connection.request(HANDSHAKE, 1, plain)
    with Connection(("127.0.0.1", port)) as connection:
        assert connection.request(HANDSHAKE, 1, plain)
        assert connection.request(AUTHENTICATE, 1, token(b"\0alice\0alice-secret"))
    assert watched.counted_at_last("CLIENTS") == (let_in + 1, failed)

    with Connection(("127.0.0.1", port)) as connection:
        assert connection.request(HANDSHAKE, 1, plain)
        assert connection.request(AUTHENTICATE, 1, token(b"\0alice\0guess"))
    with Connection(("127.0.0.1", port)) as connection:
        assert connection.request(METADATA, 1, struct.pack(">i", 0)) is None
    assert watched.counted_at_last("CLIENTS") == (let_in + 1, failed + 2)


def test_logins_of_librdkafka_count(watched: Watched) -> None:
    let_in, failed = watched.counted("CLIENTS")
    AdminClient(of_librdkafka(watched.ports["CLIENTS"], "alice", PASSWORDS["alice"])).list_topics(timeout=60)
    assert refusals(of_librdkafka(watched.ports["CLIENTS"], "alice", "guess"))
    then_let_in, then_failed = watched.counted("CLIENTS")
    assert then_let_in > let_in
    assert then_failed > failed


def test_handshakes_count_where_tls_alone_is_spoken(watched: Watched, tmp_path: Path) -> None:
    let_in, failed = watched.counted("TLS")
    where = ("localhost", watched.ports["TLS"])
    with socket.create_connection(where, ANSWER_SECONDS_MAX) as plain:
        context = ssl.create_default_context(cafile=str(watched.keys.directory / "ca.crt"))
        with context.wrap_socket(plain, server_hostname="localhost"):
            until_outside(lambda: watched.counted("TLS") == (let_in + 1, failed))
    with socket.create_connection(where, ANSWER_SECONDS_MAX) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        until_outside(lambda: watched.counted("TLS") == (let_in + 1, failed + 1))
    foreign = ssl.create_default_context(cafile=str(certificates(tmp_path / "foreign").directory / "ca.crt"))
    with (
        socket.create_connection(where, ANSWER_SECONDS_MAX) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
        foreign.wrap_socket(plain, server_hostname="localhost"),
    ):
        pytest.fail("a broker of another authority was trusted")
    until_outside(lambda: watched.counted("TLS") == (let_in + 1, failed + 2))


def test_plain_listeners_count_nothing(watched: Watched) -> None:
    AdminClient({"bootstrap.servers": f"127.0.0.1:{watched.ports['PLAINTEXT']}"}).list_topics(timeout=60)
    assert watched.counted("PLAINTEXT") == (0, 0)
