"""Clients that we did not write renew their logins while they work, by PLAIN and by SCRAM, and no connection of theirs
is closed for its login's end (KIP-368).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from tests.conformance.security.test_authentications import PREFIX, figures
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, PASSWORDS, jaas, of_librdkafka
from tests.conformance.security.test_plain import MODULE as PLAIN_MODULE
from tests.conformance.security.test_scram import MODULE as SCRAM_MODULE
from tests.conformance.security.test_scram import PASSWORD, USER, give
from tests.support.programs import kafka_tool
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

pytestmark = pytest.mark.java

LIFETIME_MS = 4000  # a client renews its login some tenths of a second before
RENEWALS = 2
TRIES_MAX = 4
SCRAM = "SCRAM-SHA-256"
LOGINS = {"PLAIN": ("alice", PASSWORDS["alice"]), SCRAM: (USER, PASSWORD)}
PER_SECOND = 50


@dataclass(frozen=True, slots=True)
class Watched:
    """A broker whose clients have to renew their logins."""

    server: Server
    port: int
    page: str

    @property
    def renewed(self) -> int:
        return figures(self.page, "CLIENTS")[f"{PREFIX}successful_reauthentication_total"]

    @property
    def failed(self) -> int:
        """Renewals that have failed."""
        return figures(self.page, "CLIENTS")[f"{PREFIX}failed_reauthentication_total"]

    @property
    def ended(self) -> int:
        """Connections that were closed behind the end of their login: one of a machine that stood still meanwhile."""
        return figures(self.page, "CLIENTS")["kavka_sessions_ended_total"]

    def while_renewed(self, send: Callable[[], None]) -> None:
        """Send one by one, until a login has been renewed twice, and no connection was closed meanwhile."""
        renewed, ended, failed = self.renewed, self.ended, self.failed

        def is_renewed() -> bool:
            nonlocal renewed, ended
            send()
            if self.ended != ended:
                renewed, ended = self.renewed, self.ended
            return self.renewed >= renewed + RENEWALS

        until_outside(is_renewed)
        assert self.failed == failed


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    ports, page = {name: free_port() for name in ("PLAINTEXT", "CLIENTS", "CONTROLLER")}, f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": ",".join(LOGINS),
        "listener.name.clients.plain.sasl.jaas.config": jaas(user_alice=PASSWORDS["alice"]),
        "listener.name.clients.connections.max.reauth.ms": str(LIFETIME_MS),
        "kavka.admin.listener": page,
    }
    server = start_kavka(tmp_path_factory.mktemp("renewals"), settings)
    give(server, USER, f"{SCRAM}=[password={PASSWORD}]")
    yield Watched(server, ports["CLIENTS"], page)
    server.kill()


@pytest.mark.parametrize("mechanism", LOGINS)
def test_librdkafka_renews_its_login(watched: Watched, name: str, mechanism: str) -> None:
    create_topic(watched.server, name)
    user, password = LOGINS[mechanism]
    producer = Producer({**of_librdkafka(watched.port, user, password), "sasl.mechanisms": mechanism})

    def send() -> None:
        producer.produce(name, b"x")
        assert producer.flush(ANSWER_SECONDS_MAX) == 0

    watched.while_renewed(send)


@pytest.mark.parametrize("mechanism", LOGINS)
def test_kafka_python_renews_its_login(watched: Watched, name: str, mechanism: str) -> None:
    create_topic(watched.server, name)
    user, password = LOGINS[mechanism]
    producer = KafkaProducer(
        bootstrap_servers=f"127.0.0.1:{watched.port}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
    )
    try:
        watched.while_renewed(lambda: producer.send(name, b"x").get(ANSWER_SECONDS_MAX))
    finally:
        producer.close()


@pytest.mark.parametrize("mechanism", LOGINS)
def test_the_java_client_renews_its_login(watched: Watched, name: str, tmp_path: Path, mechanism: str) -> None:
    create_topic(watched.server, name)
    user, password = LOGINS[mechanism]
    words = jaas(username=user, password=password)
    client, records = tmp_path / "client.properties", PER_SECOND * LIFETIME_MS * 5 // 2000
    client.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={words if mechanism == 'PLAIN' else words.replace(PLAIN_MODULE, SCRAM_MODULE)}\n"
    )
    failed, ended, renewed = watched.failed, -1, -1
    for _ in range(TRIES_MAX):
        ended, renewed = watched.ended, watched.renewed
        said = kafka_tool(
            "producer-perf-test", "--bootstrap-server", f"127.0.0.1:{watched.port}", "--command-config", str(client),
            "--topic", name, "--num-records", str(records), "--throughput", str(PER_SECOND), "--record-size", "10",
        )  # fmt: skip
        assert f"{records} records sent" in said
        assert watched.failed == failed
        if watched.ended == ended:
            break
    assert watched.ended == ended
    assert watched.renewed >= renewed + RENEWALS
