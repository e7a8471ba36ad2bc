"""SCRAM: clients that we did not write log in with passwords that Kafka's tool has given, and no others.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from tests.support.programs import kafka_tool
from tests.support.refusals import refusals
from tests.support.servers import Server, free_port, start_kavka, start_server
from tests.support.topics import create_topic

pytestmark = pytest.mark.java

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice", "correct horse"
ANSWER_SECONDS_MAX = 60.0


def settings(port: int, sasl_port: int, controller_port: int) -> dict[str, str]:
    """A listener that everybody may use, and one that asks who they are."""
    ports = {"PLAINTEXT": port, "CLIENTS": sasl_port, "CONTROLLER": controller_port}
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in ports.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.clients.{name.lower()}.sasl.jaas.config": f"{MODULE} required;" for name in MECHANISMS},
    }


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sasl_port: int) -> Iterator[Server]:
    """A broker whose user was made by Kafka's tool, with the password and the default iterations of the tool."""
    found = start_server(tmp_path_factory.mktemp("scram"), settings(free_port(), sasl_port, free_port()))
    for mechanism in MECHANISMS:
        give(found, USER, f"{mechanism}=[password={PASSWORD}]")
    yield found
    found.kill()


def give(server: Server, user: str, added: str) -> str:
    """Give a user a password with kafka-configs.sh."""
    entity = ("--entity-type", "users", "--entity-name", user)
    return kafka_tool("configs", "--bootstrap-server", server.bootstrap, "--alter", *entity, "--add-config", added)


def of_librdkafka(port: int, mechanism: str, user: str = USER, password: str = PASSWORD, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
        **more,
    }


def is_let_in(port: int, mechanism: str, user: str, password: str) -> bool:
    """Whether librdkafka logs in; otherwise it was told that it may not."""
    return not refusals(of_librdkafka(port, mechanism, user, password))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_produces_and_consumes(server: Server, sasl_port: int, name: str, mechanism: str) -> None:
    create_topic(server, name)
    idempotent: dict[str, Any] = {"enable.idempotence": True}
    producer = Producer(of_librdkafka(sasl_port, mechanism, **idempotent))
    for number in range(100):
        producer.produce(name, str(number).encode())
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    group: dict[str, Any] = {"group.id": name, "auto.offset.reset": "earliest"}
    consumer = Consumer(of_librdkafka(sasl_port, mechanism, **group))
    consumer.subscribe([name])
    read = consumer.consume(100, ANSWER_SECONDS_MAX)
    consumer.close()
    assert [message.value() for message in read] == [str(number).encode() for number in range(100)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_produces(server: Server, sasl_port: int, name: str, mechanism: str) -> None:
    create_topic(server, name)
    producer = KafkaProducer(
        bootstrap_servers=f"127.0.0.1:{sasl_port}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=USER,
        sasl_plain_password=PASSWORD,
    )
    assert producer.send(name, b"x").get(ANSWER_SECONDS_MAX).offset == 0
    producer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_java_tools_log_in(server: Server, sasl_port: int, name: str, tmp_path: Path, mechanism: str) -> None:
    client = tmp_path / "client.properties"
    login = f'{MODULE} required username="{USER}" password="{PASSWORD}";'
    client.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={login}\n")
    address = ("--bootstrap-server", f"127.0.0.1:{sasl_port}", "--command-config", str(client))
    kafka_tool("topics", *address, "--create", "--topic", name)
    assert name in kafka_tool("topics", *address, "--list").split()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(USER, "guess"), ("nobody", PASSWORD), (USER, "x")])
def test_nobody_else_is_let_in(server: Server, sasl_port: int, mechanism: str, user: str, password: str) -> None:
    assert not is_let_in(sasl_port, mechanism, user, password)


def test_a_password_is_changed_and_taken_away(server: Server, sasl_port: int) -> None:
    entity = ("--entity-type", "users", "--entity-name", "carol")
    give(server, "carol", "SCRAM-SHA-256=[iterations=8192,password=first]")
    assert is_let_in(sasl_port, "SCRAM-SHA-256", "carol", "first")
    assert not is_let_in(sasl_port, "SCRAM-SHA-512", "carol", "first"), "it was given for one mechanism"
    give(server, "carol", "SCRAM-SHA-256=[password=second]")
    assert [is_let_in(sasl_port, "SCRAM-SHA-256", "carol", word) for word in ("first", "second")] == [False, True]
    address = ("--bootstrap-server", server.bootstrap)
    assert "SCRAM-SHA-256=iterations=4096" in kafka_tool("configs", *address, "--describe", *entity)
    kafka_tool("configs", *address, "--alter", *entity, "--delete-config", "SCRAM-SHA-256")
    assert not is_let_in(sasl_port, "SCRAM-SHA-256", "carol", "second")


def test_no_password_is_in_the_log(server: Server) -> None:
    text = Path(server.log_path).read_text(errors="replace")
    assert PASSWORD not in text
    assert "guess" not in text


def test_a_user_of_the_format_logs_in_and_outlives_a_restart(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(3)]
    user = f"SCRAM-SHA-512=[name=first,password={PASSWORD}]"
    server = start_kavka(tmp_path, settings(ports[0], ports[1], ports[2]), formatting=("--add-scram", user))
    try:
        assert is_let_in(ports[1], "SCRAM-SHA-512", "first", PASSWORD)
        server.kill()
        server.start()
        assert is_let_in(ports[1], "SCRAM-SHA-512", "first", PASSWORD)
        assert not is_let_in(ports[1], "SCRAM-SHA-512", "first", "guess")
    finally:
        server.kill()
    assert PASSWORD not in "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*.checkpoint"))
