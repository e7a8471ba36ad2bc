"""Users that have logged in, and access rules: each may do what its own rules say, with real clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, PASSWORDS, jaas, of_librdkafka, settings
from tests.support.programs import kafka_tool
from tests.support.servers import Server, free_port, start_server
from tests.support.topics import create_topic

pytestmark = pytest.mark.java

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # who reaches the listener of the nodes
}


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sasl_port: int) -> Iterator[Server]:
    found = start_server(
        tmp_path_factory.mktemp("rules"), {**settings(free_port(), sasl_port, free_port()), **AUTHORIZER}
    )
    yield found
    found.kill()


def produced(port: int, topic: str, user: str) -> KafkaError | None:
    """The error of one record that a user produces; None if it is there."""
    found: list[KafkaError | None] = []

    def told(error: KafkaError | None, message: Message) -> None:
        del message
        found.append(error)

    producer = Producer(of_librdkafka(port, user, PASSWORDS[user], **{"message.timeout.ms": 60_000}))
    producer.produce(topic, b"x", on_delivery=told)
    producer.flush(2 * ANSWER_SECONDS_MAX)  # the record's own time comes first
    (error,) = found
    return error


def test_a_user_may_do_what_its_rules_say_and_another_may_not(server: Server, sasl_port: int, name: str) -> None:
    create_topic(server, name)
    address = ("--bootstrap-server", server.bootstrap)
    kafka_tool("acls", *address, "--add", "--allow-principal", "User:alice", "--producer", "--topic", name)
    assert produced(sasl_port, name, "alice") is None
    refused = produced(sasl_port, name, "bob")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer = Consumer(of_librdkafka(sasl_port, "alice", PASSWORDS["alice"], **{"group.id": name}))
    consumer.subscribe([name])
    answer = consumer.poll(ANSWER_SECONDS_MAX)
    consumer.close()
    assert answer is not None
    error = answer.error()
    assert error is not None
    assert error.code() in {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}


def test_who_has_logged_in_may_not_change_rules_without_a_rule(
    server: Server, sasl_port: int, name: str, tmp_path: Path
) -> None:
    """Adding a rule is forwarded to the controller, which judges the client and not the broker that asks for it."""
    client = tmp_path / "client.properties"
    login = jaas(username="alice", password=PASSWORDS["alice"])
    client.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    address = ("--bootstrap-server", f"127.0.0.1:{sasl_port}", "--command-config", str(client))
    rule = ("--add", "--allow-principal", "User:alice", "--operation", "All", "--topic", name)
    with pytest.raises(AssertionError, match=r"(?i)authorization"):
        kafka_tool("acls", *address, *rule)
    assert name not in kafka_tool("acls", "--bootstrap-server", server.bootstrap, "--list")
