"""What the audit trail tells besides: certificates, limits of topics, cut logs, and what controllers refuse."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from kavka_broker.core.audit.chain import Kind
from tests.conformance.security.test_audit import KEY, trail
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX
from tests.support.nodes import apart, cluster
from tests.support.secured import Certificates, certificates
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def audited(directory: Path) -> dict[str, str]:
    key = directory / "audit.key"
    key.write_bytes(KEY.secret)
    return {"kavka.audit.key.file": str(key), "kavka.audit.interval.ms": "1000", "num.partitions": "1"}


def events(server: Server, class_uid: int) -> list[dict[str, Any]]:
    found = [json.loads(entry.value) for entry in trail(server) if entry.kind is Kind.EVENT]
    return [event for event in found if event["class_uid"] == class_uid]


@contextmanager
def with_certificates(directory: Path, keys: Certificates, port: int) -> Iterator[Server]:
    """A broker with a listener for everybody, and one whose clients show a certificate."""
    plain, controller = free_port(), free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},MUTUAL://localhost:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,MUTUAL:SSL,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.directory / "ca.crt"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1-of-tls/U",
        **audited(directory),
    }
    server = start_kavka(directory / "broker", settings)
    try:
        yield server
    finally:
        server.kill()


def of_librdkafka(port: int, trusted: Certificates, own: Certificates) -> dict[str, Any]:
    files = {"ca": trusted.directory / "ca.crt"} | {
        "certificate": own.directory / "client.crt",
        "key": own.directory / "client.key",
    }
    named = {f"ssl.{name}.location": str(path) for name, path in files.items()}
    return {"bootstrap.servers": f"localhost:{port}", "security.protocol": "SSL", "log_level": 0, **named}


def test_logins_by_certificate_are_told_good_and_bad(tmp_path: Path) -> None:
    keys, foreign, port = certificates(tmp_path / "keys"), certificates(tmp_path / "foreign"), free_port()
    with with_certificates(tmp_path, keys, port) as server:
        AdminClient(of_librdkafka(port, keys, keys)).list_topics(timeout=ANSWER_SECONDS_MAX)
        stranger = Producer(of_librdkafka(port, keys, foreign))

        def told() -> set[tuple[Any, ...]]:
            stranger.poll(0.1)
            return {
                (event["user"]["name"], event["auth_protocol"], event["status_id"], event["service"]["name"])
                for event in events(server, 3002)
            }

        place = ("TLS", "kafka listener MUTUAL")
        expected = {("CLIENT-OF-TLS", place[0], 1, place[1]), ("unknown", place[0], 2, place[1])}
        until_outside(lambda: told() == expected)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = start_kavka(tmp_path / "broker", audited(tmp_path))
    yield found
    found.kill()


def altered(admin: AdminClient, topic: str, configs: Mapping[str, str]) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS_MAX)


def test_a_limit_of_a_topic_that_holds_a_client_is_told(server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    create_topic(server, "orders")
    altered(admin, "orders", {"kavka.topic.producer.byte.rate": "10000"})
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "greedy", "linger.ms": 0})
    for _ in range(150):
        producer.produce("orders", b"x" * 1_000)
        producer.poll(0)
    assert producer.flush(60) == 0

    def delays() -> list[dict[str, Any]]:
        return [event for event in events(server, 6003) if event["disposition_id"] == 14]

    until_outside(lambda: bool(delays()))
    told = delays()[0]
    assert told["actor"]["app_name"] == "greedy"
    assert told["resources"] == [{"type": "client_quota", "name": "topic=orders"}]
    kafka = told["unmapped"]["kafka"]
    assert (kafka["quota_type"], kafka["quota_entity"], kafka["quota_limit"]) == (
        "topic_produce",
        {"topic": "orders"},
        10_000,
    )
    assert kafka["throttle_time_ms"] > 0


def test_what_a_client_cuts_off_a_log_is_told(server: Server) -> None:
    create_topic(server, "orders")
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(3):
        producer.produce("orders", str(number).encode(), partition=0)
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "client.id": "janitor"})
    for future in admin.delete_records([TopicPartition("orders", 0, 2)]).values():
        future.result(ANSWER_SECONDS_MAX)

    def told() -> list[Any]:
        return [
            event["resources"][0].get("data")
            for event in events(server, 6003)
            if event["actor"].get("app_name") == "janitor"
        ]

    until_outside(lambda: {"key": "start of partition 0", "value": "2", "previous": None} in told())


def test_a_node_that_is_only_a_controller_tells_what_it_refuses_and_what_is_asked_of_its_own_listener(
    tmp_path: Path,
) -> None:
    """The client asks a broker, and the controller refuses; another asks the controller itself."""
    settings = {
        **audited(tmp_path),
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "authorizer.class.name": STANDARD,
        "super.users": "User:nobody",
        "allow.everyone.if.no.acl.found": "true",
    }
    with cluster(tmp_path, apart(1, 1), settings) as nodes:
        admin = AdminClient({"bootstrap.servers": nodes.bootstrap})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(ANSWER_SECONDS_MAX)
        deny(admin)
        with pytest.raises(KafkaException):
            admin.create_partitions([_grown("orders")])["orders"].result(ANSWER_SECONDS_MAX)

        def of_controllers() -> list[dict[str, Any]]:
            return [
                json.loads(entry.value)
                for entry in trail(nodes[1])
                if entry.kind is Kind.EVENT and entry.source.startswith("100-")
            ]

        def refused() -> set[tuple[str, str]]:
            return {
                (event["api"]["operation"], event["resources"][0]["name"])
                for event in of_controllers()
                if event["class_uid"] == 6003 and event["action_id"] == 2
            }

        until_outside(lambda: ("ALTER", "orders") in refused())
        assert [event["app"]["name"] for event in of_controllers() if event["class_uid"] == 6002] == ["kavka node 100"]


def deny(admin: AdminClient) -> None:
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    literal, deny_ = ResourcePatternType.LITERAL, AclPermissionType.DENY
    rule = AclBinding(ResourceType.TOPIC, "orders", literal, "User:ANONYMOUS", "*", AclOperation.ALTER, deny_)
    for future in admin.create_acls([rule]).values():
        future.result(ANSWER_SECONDS_MAX)


def _grown(topic: str) -> Any:
    from confluent_kafka.admin import NewPartitions

    return NewPartitions(topic, 2)
