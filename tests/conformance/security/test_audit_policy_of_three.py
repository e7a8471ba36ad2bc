"""`kavka.audit.failure.policy=reject` on three brokers: whose trail is full refuses, and holds up no other.

librdkafka with its default settings writes to all partitions of three replicas each. What the full broker leads waits
at its client; what the others lead passes, though the full one is among the replicas that have to have it; a broker
that is killed meanwhile is replaced. No record and no event of those that live is missing at last.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType

from kavka_broker.core.audit.chain import Entry, Kind
from kavka_broker.core.audit.verification import verify
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.describe_acls_request import DescribeAclsRequest
from kavka_broker.protocol.messages.describe_acls_response import DescribeAclsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.conformance.security.test_audit import KEY, TOPIC, trail
from tests.conformance.security.test_audit_policy import POLICY_VIOLATION, bound, metric, permit, refused, rule
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, jaas
from tests.support.asking import ask
from tests.support.nodes import Nodes, cluster, combined
from tests.support.servers import free_port
from tests.support.waiting import until_outside
from tests.support.wire import Connection

LOOK_SECONDS_MAX = 5.0
SECONDS_MAX = 120.0
FULL, OTHER, KILLED = 1, 2, 3
HELD_MAX = 10_000
AT_ONCE = 5_000
PARTITIONS = 6
ASKED_MAX = 50
SECRET = "secret"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.inside.plain.sasl.jaas.config": jaas(
        username="node", password=SECRET, user_node=SECRET, user_alice=SECRET
    ),
    "super.users": "User:node;User:ANONYMOUS",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kavka.audit.failure.policy": "reject",
    "num.partitions": "1",
    "kavka.audit.buffer.events": str(HELD_MAX),
}


@pytest.fixture
def admin_ports() -> dict[int, int]:
    return {node_id: free_port() for node_id in (FULL, OTHER, KILLED)}


@pytest.fixture
def nodes(tmp_path: Path, admin_ports: dict[int, int]) -> Iterator[Nodes]:
    key = tmp_path / "audit.key"
    key.write_bytes(KEY.secret)
    with cluster(tmp_path, combined(3), {**SETTINGS, "kavka.audit.key.file": str(key)}, started=False) as found:
        for node_id, port in admin_ports.items():
            with (found[node_id].directory / "server.properties").open("a") as file:
                file.write(f"kavka.admin.listener=127.0.0.1:{port}\n")
        found.start()
        yield found


def alice_at(nodes: Nodes) -> dict[str, str]:
    return {
        "bootstrap.servers": ",".join(f"127.0.0.1:{place.inside_port}" for place in nodes.places),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": SECRET,
    }


def fill(nodes: Nodes, node_id: int) -> None:
    """Ask one broker for so many rules that its trail has no room; it asks the controller in its turn."""
    for first in range(0, HELD_MAX, AT_ONCE):
        names = [f"filling-{number}" for number in range(first, first + AT_ONCE)]
        rules = [AclCreation(2, name, 3, "User:alice", "*", 3, 3) for name in names]
        with Connection(nodes[node_id].address, ANSWER_SECONDS_MAX) as connection:
            assert connection.request(30, 3, encode(CreateAclsRequest(rules), 3), flexible=True)


def leaders(admin: AdminClient, topic: str, seconds_max: float = ANSWER_SECONDS_MAX) -> dict[int, int]:
    found = admin.list_topics(topic, timeout=seconds_max).topics[topic].partitions
    return {partition: about.leader for partition, about in found.items()}


def is_led_elsewhere(admin: AdminClient, topic: str) -> bool:
    """Whether the node that was killed leads nothing. librdkafka may have asked just that one, and waits for it."""
    try:
        return KILLED not in leaders(admin, topic, LOOK_SECONDS_MAX).values()
    except KafkaException:
        return False


def test_a_full_trail_holds_up_no_other_broker(nodes: Nodes, admin_ports: dict[int, int]) -> None:
    operator = AdminClient({"bootstrap.servers": nodes.bootstrap})
    operator.create_topics([NewTopic("orders", PARTITIONS, 3)])["orders"].result(ANSWER_SECONDS_MAX)
    permit(operator, [rule("orders", it) for it in (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)])
    permit(operator, [rule("kafka-cluster", AclOperation.CREATE, ResourceType.BROKER)])
    permit(operator, [rule("none", AclOperation.READ, ResourceType.GROUP)])  # to close, librdkafka asks its coordinator
    until_outside(lambda: TOPIC in operator.list_topics(timeout=ANSWER_SECONDS_MAX).topics)
    until_outside(lambda: all(knows_last_rule(server.address) for server in nodes.servers.values()))
    bound(operator, 50)
    fill(nodes, FULL)
    until_outside(lambda: metric(admin_ports[FULL], "kavka_audit_refusing") == 1)
    assert metric(admin_ports[OTHER], "kavka_audit_refusing") == 0

    told = dict[int, str | None]()

    def delivered(error: object, message: Message) -> None:
        partition = message.partition()
        assert partition is not None
        told[partition] = None if error is None else str(error)

    producer = Producer({**alice_at(nodes), "log_level": 0})
    led = leaders(operator, "orders")
    assert set(led.values()) == {FULL, OTHER, KILLED}
    for partition in led:
        producer.produce("orders", b"%d" % partition, partition=partition, on_delivery=delivered)
    elsewhere = {partition for partition, leader in led.items() if leader != FULL}
    until_outside(lambda: producer.poll(0.1) is not None and told.keys() >= elsewhere)
    until_outside(lambda: producer.poll(0.1) is not None and refused(admin_ports[FULL], "produce") > 1)
    assert told == dict.fromkeys(elsewhere), "and followers whose trail is full take what leaders have"

    nodes.kill(KILLED)
    until_outside(lambda: is_led_elsewhere(operator, "orders"), SECONDS_MAX)
    ask_until_refused(nodes)
    again = {partition for partition, leader in leaders(operator, "orders").items() if leader == OTHER}
    told.clear()
    for partition in again:
        producer.produce("orders", b"again %d" % partition, partition=partition, on_delivery=delivered)
    until_outside(lambda: producer.poll(0.1) is not None and told.keys() >= again)
    assert told == dict.fromkeys(again)

    bound(operator, 1 << 20)
    assert producer.flush(60) == 0
    assert set(told.values()) == {None}
    assert read(nodes, PARTITIONS + len(again)) == {
        **{b"%d" % partition: 1 for partition in led},
        **{b"again %d" % partition: 1 for partition in again},
    }
    nodes[KILLED].start()
    for node_id in (FULL, OTHER):
        nodes.wait("the trail has all its replicas", lambda: is_whole(nodes))  # or its end is taken by too few
        nodes[node_id].stop()
        nodes[node_id].start()
    entries = list[Entry]()

    def is_told() -> bool:
        entries[:] = trail(nodes[OTHER])
        return sum(entry.kind is Kind.END for entry in entries) == 2

    until_outside(is_told)
    assert_whole(entries)


def knows_last_rule(address: tuple[str, int]) -> bool:
    """Whether a broker has heard of the rules by now: of the last one, and with it of those before."""
    answer = ask(address, DescribeAclsRequest(3, "none", 3, "User:alice", None, 1, 1), DescribeAclsResponse)
    return bool(answer.resources)


def is_whole(nodes: Nodes) -> bool:
    """Whether each broker says that the audit topic's replicas are all in sync."""
    request = MetadataRequest([MetadataRequestTopic(name=TOPIC)])
    answers = [ask(server.address, request, MetadataResponse) for server in nodes.servers.values()]
    found = [partition for answer in answers for topic in answer.topics for partition in topic.partitions]
    return len(found) == len(answers) and all(len(partition.isr_nodes) == 3 for partition in found)


def ask_until_refused(nodes: Nodes) -> None:
    """Create topics, each by a client of its own, until one has asked the broker whose trail is full."""
    for number in range(ASKED_MAX):
        name = f"bills-{number}"
        client = AdminClient({**alice_at(nodes), "log_level": 0})
        try:
            client.create_topics([NewTopic(name, 1, 3)])[name].result(60)
        except KafkaException as refusal:
            error = refusal.args[0]
            assert error.code() == POLICY_VIOLATION
            assert "the audit trail has no room" in error.str()
            return
    pytest.fail("no request has come to the broker that is full")


def read(nodes: Nodes, count: int) -> Counter[bytes]:
    consumer = Consumer({**alice_at(nodes), "group.id": "none"})
    consumer.assign([TopicPartition("orders", partition, 0) for partition in range(PARTITIONS)])
    found, deadline = Counter[bytes](), time.monotonic() + 60
    while found.total() < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None and (value := message.value()) is not None:
            found[value] += 1
    consumer.close()
    return found


def assert_whole(entries: list[Entry]) -> None:
    """Every chain verifies, nothing is lost, and the full one tells each rule that it let in."""
    chains = dict[str, list[Entry]]()
    for entry in entries:
        chains.setdefault(entry.source, []).append(entry)
    verdicts = {source: verify(entries, [KEY]) for source, entries in chains.items()}
    assert {source: (verdict.damage, verdict.lost) for source, verdict in verdicts.items()} == dict.fromkeys(
        chains, (None, 0)
    )
    assert sum(verdict.is_ended for verdict in verdicts.values()) == 2
    events = [json.loads(entry.value) for one in chains.values() for entry in one if entry.kind is Kind.EVENT]
    named = Counter(resource["name"] for event in events for resource in event.get("resources", ()))
    filled = {name: count for name, count in named.items() if "filling-" in name}
    assert len(filled) == HELD_MAX
    assert set(filled.values()) == {1}
