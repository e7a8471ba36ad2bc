"""SASL/PLAIN: clients that we did not write log in, others do not, and quotas know them by their names."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from kavka_broker.core.quota.entity import Entity
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.kafka.client import KafkaClient
from tests.support.programs import kafka_tool
from tests.support.refusals import refusals
from tests.support.servers import Server, free_port, start_server
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

PASSWORDS = {"alice": "alice-secret", "bob": 'b "o;=b'}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ANSWER_SECONDS_MAX = 60.0
LIMIT = 50_000
RECORD_BYTES = 10_000


def jaas(**options: str) -> str:
    escaped = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items()}
    return " ".join([MODULE, "required", *(f'{name}="{value}"' for name, value in escaped.items())]) + ";"


def settings(port: int, sasl_port: int, controller_port: int) -> dict[str, str]:
    """A listener that everybody may use, and one that asks who they are."""
    ports = {"PLAINTEXT": port, "CLIENTS": sasl_port, "CONTROLLER": controller_port}
    users = jaas(**{f"user_{name}": password for name, password in PASSWORDS.items()})
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in ports.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        # A properties file takes a backslash for itself.
        "listener.name.clients.plain.sasl.jaas.config": users.replace("\\", "\\\\"),
    }


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sasl_port: int) -> Iterator[Server]:
    found = start_server(tmp_path_factory.mktemp("plain"), settings(free_port(), sasl_port, free_port()))
    yield found
    found.kill()


def of_librdkafka(port: int, user: str, password: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
        **more,
    }


@pytest.mark.parametrize("user", PASSWORDS)
def test_librdkafka_produces_and_consumes(server: Server, sasl_port: int, name: str, user: str) -> None:
    create_topic(server, name)
    producer = Producer(of_librdkafka(sasl_port, user, PASSWORDS[user], **{"enable.idempotence": True}))
    for number in range(100):
        producer.produce(name, str(number).encode())
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    group = {"group.id": name, "auto.offset.reset": "earliest"}
    consumer = Consumer(of_librdkafka(sasl_port, user, PASSWORDS[user], **group))
    consumer.subscribe([name])
    read = consumer.consume(100, ANSWER_SECONDS_MAX)
    consumer.close()
    assert [message.value() for message in read] == [str(number).encode() for number in range(100)]


@pytest.mark.parametrize(("user", "password"), [("alice", "guess"), ("nobody", "alice-secret"), ("alice", "b")])
def test_librdkafka_is_told_that_it_may_not_in(server: Server, sasl_port: int, user: str, password: str) -> None:
    told = refusals(of_librdkafka(sasl_port, user, password))
    assert told
    assert "Authentication failed: Invalid username or password" in told[0]


def test_kafka_python_produces(server: Server, sasl_port: int, name: str) -> None:
    create_topic(server, name)
    producer = KafkaProducer(
        bootstrap_servers=f"127.0.0.1:{sasl_port}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password=PASSWORDS["alice"],
    )
    assert producer.send(name, b"x").get(ANSWER_SECONDS_MAX).offset == 0
    producer.close()


def test_who_does_not_log_in_is_served_nothing(server: Server, sasl_port: int) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{sasl_port}", "log_level": 0})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=2.0)


def is_throttled(port: int, topic: str, user: str) -> bool:
    """Whether a user is told so, while it produces for longer than its quota allows."""
    told: list[object] = []
    producer = Producer(of_librdkafka(port, user, PASSWORDS[user], throttle_cb=told.append))
    producer.produce(topic, b"x")
    assert producer.flush(ANSWER_SECONDS_MAX) == 0, "it is let in: from now on it is the quota that decides"
    sent = 0
    while sent < 40 * LIMIT and not told:
        producer.produce(topic, b"x" * RECORD_BYTES)
        producer.poll(0.01)
        sent += RECORD_BYTES
    until_outside(lambda: producer.poll(0.1) is not None and (bool(told) or len(producer) == 0))
    producer.purge()
    producer.flush(1)
    return bool(told)


def test_a_quota_of_a_user_holds_for_who_has_logged_in_as_that_user(server: Server, sasl_port: int, name: str) -> None:
    create_topic(server, name)
    with closing(KafkaClient(server.bootstrap)) as admin:
        admin.perform(AlterQuota(Entity("bob", None), {"producer_byte_rate": float(LIMIT)}))
        assert {user: is_throttled(sasl_port, name, user) for user in PASSWORDS} == {"alice": False, "bob": True}
        # What is above the limit would be waited for by the other tests of this user.
        admin.perform(AlterQuota(Entity("bob", None), {}, ("producer_byte_rate",)))


def test_the_java_tools_log_in(server: Server, sasl_port: int, name: str, tmp_path: Path) -> None:
    client = tmp_path / "client.properties"
    login = jaas(username="alice", password=PASSWORDS["alice"])
    client.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    address = ("--bootstrap-server", f"127.0.0.1:{sasl_port}", "--command-config", str(client))
    kafka_tool("topics", *address, "--create", "--topic", name)
    assert name in kafka_tool("topics", *address, "--list").split()


def test_no_password_is_in_the_log(server: Server) -> None:
    text = Path(server.log_path).read_text(errors="replace")
    assert not any(password in text for password in PASSWORDS.values())
    assert "guess" not in text
