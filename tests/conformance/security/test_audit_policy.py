"""`kavka.audit.failure.policy=reject`: while the trail takes no events nothing happens that it would have to tell.

librdkafka with its default settings meets a broker whose audit topic has become unwritable and is mended: its records
and its consumer wait, its requests for changes are refused in words, and nothing that was changed is missing at last.
"""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kavka_broker.core.audit.buffer import HELD_MAX
from kavka_broker.core.audit.chain import Kind
from kavka_broker.core.audit.verification import verify
from tests.conformance.security.test_audit import KEY, TOPIC, trail
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, PASSWORDS, of_librdkafka, settings
from tests.conformance.security.test_users_and_rules import AUTHORIZER
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

AT_ONCE = 5_000  # rules of one request, each of which is an event
POLICY_VIOLATION = 44


@pytest.fixture
def sasl_port() -> int:
    return free_port()


@pytest.fixture
def admin_port() -> int:
    return free_port()


@pytest.fixture
def server(tmp_path: Path, sasl_port: int, admin_port: int) -> Iterator[Server]:
    key = tmp_path / "audit.key"
    key.write_bytes(KEY.secret)
    found = start_kavka(
        tmp_path / "broker",
        {
            **settings(free_port(), sasl_port, free_port()),
            **AUTHORIZER,
            "kavka.audit.key.file": str(key),
            "kavka.audit.failure.policy": "reject",
            "kavka.admin.listener": f"127.0.0.1:{admin_port}",
            "num.partitions": "1",
        },
    )
    yield found
    found.kill()


def rule(topic: str, operation: AclOperation, resource: ResourceType = ResourceType.TOPIC) -> AclBinding:
    pattern, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(resource, topic, pattern, "User:alice", "*", operation, allow)


def permit(admin: AdminClient, rules: list[AclBinding]) -> None:
    for future in admin.create_acls(rules, request_timeout=60).values():
        future.result(60)


def bound(admin: AdminClient, size_bytes: int) -> None:
    """Set how long a batch of the trail may be: with a few bytes the topic takes none."""
    entry = ConfigEntry("max.message.bytes", str(size_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS_MAX)


def metric(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def test_librdkafka_waits_until_the_trail_can_be_told(server: Server, sasl_port: int, admin_port: int) -> None:
    create_topic(server, "orders")
    operator = AdminClient({"bootstrap.servers": server.bootstrap})
    alice: dict[str, Any] = of_librdkafka(sasl_port, "alice", PASSWORDS["alice"])
    allowed = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]
    rules = [rule("orders", operation) for operation in allowed]
    rules += [rule(TOPIC, operation) for operation in (AclOperation.READ, AclOperation.ALTER_CONFIGS)]
    rules += [rule("kafka-cluster", AclOperation.CREATE, ResourceType.BROKER)]
    rules += [rule("none", AclOperation.READ, ResourceType.GROUP)]  # to close, librdkafka asks its coordinator
    permit(operator, rules)
    until_outside(lambda: metric(admin_port, 'kavka_audit_told_total{kind="change"}') >= len(rules))
    until_outside(lambda: len(trail(server)) > 0)  # told is what waits, too; behind the bound nothing more is written

    bound(operator, 50)
    for first in range(0, HELD_MAX, AT_ONCE):  # a super user is let in, and told
        permit(operator, [rule(f"filling-{number}", AclOperation.READ) for number in range(first, first + AT_ONCE)])
    until_outside(lambda: metric(admin_port, "kavka_audit_refusing") == 1)
    assert metric(admin_port, "kavka_audit_buffer_usage_ratio") > 0.99

    told: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        told.append(error)

    producer = Producer(alice)
    producer.produce("orders", b"patient", on_delivery=delivered)
    until_outside(lambda: producer.poll(0.1) is not None and refused(admin_port, "produce") > 1)
    consumer = Consumer({**alice, "group.id": "none", "enable.partition.eof": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    until_outside(lambda: consumer.poll(0.1) is not None or refused(admin_port, "fetch") > 1)
    assert told == []

    client = AdminClient(alice)
    with pytest.raises(KafkaException) as refusal:
        client.create_topics([NewTopic("bills", 1, 1)])["bills"].result(ANSWER_SECONDS_MAX)
    error = refusal.value.args[0]
    assert error.code() == POLICY_VIOLATION
    assert "the audit trail has no room" in error.str()
    assert refused(admin_port, "change") == 1
    assert "bills" not in operator.list_topics(timeout=ANSWER_SECONDS_MAX).topics
    assert len(trail(server)) > 0  # the trail itself can be read

    bound(client, 1 << 20)  # no super user: it may alter the audit topic
    assert producer.flush(60) == 0
    assert told == [None]
    message = None
    while message is None:
        message = consumer.poll(1.0)
    assert (message.error(), message.value()) == (None, b"patient")
    consumer.close()
    client.create_topics([NewTopic("bills", 1, 1)])["bills"].result(ANSWER_SECONDS_MAX)
    server.stop()
    server.start()
    until_outside(lambda: any(entry.kind is Kind.END for entry in trail(server)))
    whole = trail(server)
    entries = [entry for entry in whole if entry.source == whole[0].source]
    verdict = verify(entries, [KEY])
    assert (verdict.damage, verdict.lost, verdict.is_ended) == (None, 0, True)
    events = [json.loads(entry.value) for entry in entries if entry.kind is Kind.EVENT]
    made = [event["resources"][0] for event in events if event["class_uid"] == 6003 and event["action_id"] == 1]
    filled = [found["name"] for found in made if found["type"] == "acl" and "filling-" in found["name"]]
    assert len(set(filled)) == len(filled) == HELD_MAX
    assert [found["name"] for found in made if found["name"] == "bills"] == ["bills"]
    assert [event["activity_id"] for event in events if event["class_uid"] == 6002] == [3, 4]


def refused(port: int, kind: str) -> float:
    return metric(port, f'kavka_audit_refused_total{{kind="{kind}"}}')
