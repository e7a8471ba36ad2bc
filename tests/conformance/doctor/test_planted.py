"""The doctor on a broker that runs: planted ills are found by name, none where there is none, all by reading."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_operator.doctor.rules import judge
from kavka_operator.domain.plan import AlterQuota, CreateTopic
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.kafka.inspection import Examiner
from tests.support.servers import Server, free_port

READS = {
    "ApiVersions",
    "DescribeClientQuotas",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeGroups",
    "ConsumerGroupDescribe",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeTransactions",
    "FindCoordinator",
    "ListGroups",
    "ListOffsets",
    "ListTransactions",
    "Metadata",
    "OffsetFetch",
}
TOPICS = {
    "kept": {"retention.ms": "-1"},
    "longer": {"retention.ms": "60000"},
    "unclean": {"unclean.leader.election.enable": "true"},
    "above": {"min.insync.replicas": "3"},
    "idle": {},
    "unread": {},
}
#: A disk of the machine may be nearly full, and that is no lie.
OF_THE_MACHINE = {"disk-full"}


@pytest.fixture
def healthy(start: Callable[..., Server]) -> Server:
    return start()


def found_in(server: Server, asked: set[str]) -> dict[str, str]:
    """The codes of the findings with their evidence; the APIs that were asked for."""
    client = Examiner(server.bootstrap)
    manager: Any = client._client._manager
    send = manager.send

    def noted(request: Any, *arguments: Any, **options: Any) -> Any:
        asked.add(type(request).__name__.removesuffix("Request"))
        return send(request, *arguments, **options)

    manager.send = noted
    try:
        seen = client.examine()
    finally:
        client.close()
    assert not seen.untold
    return {finding.code: finding.evidence for finding in judge(seen) if finding.code not in OF_THE_MACHINE}


def committed(server: Server, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def produced(server: Server, *topics: str) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for topic in topics:
        for _ in range(10):
            producer.produce(topic, b"x")
    assert producer.flush(60) == 0


@pytest.fixture
def admin(healthy: Server) -> Iterator[KafkaClient]:
    client = KafkaClient(healthy.bootstrap)
    yield client
    client.close()


def test_a_healthy_broker_has_no_finding_and_is_only_read(healthy: Server, admin: KafkaClient) -> None:
    admin.perform(CreateTopic("orders", 1, 1, {}))
    admin.perform(AlterQuota(Entity(None, "etl"), {"producer_byte_rate": 5_000_000.0}))
    produced(healthy, "orders")
    committed(healthy, "readers", "orders", 10)
    asked: set[str] = set()
    assert found_in(healthy, asked) == {}
    assert asked <= READS


def test_planted_ills_are_found_by_name(start: Callable[..., Server]) -> None:
    port, controllers = free_port(), free_port()
    listeners = f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:{controllers}"
    sick = start(
        listeners=listeners,
        advertised_listeners=f"PLAINTEXT://127.0.0.1:{port}",
        controller_quorum_bootstrap_servers=f"127.0.0.1:{controllers}",
    )
    client = KafkaClient(sick.bootstrap)
    for name, config in TOPICS.items():
        client.perform(CreateTopic(name, 1, 1, config))
    client.perform(AlterQuota(Entity(DEFAULT, None), {"producer_byte_rate": 5_000_000.0}))
    client.perform(AlterQuota(Entity(None, "etl"), {"producer_byte_rate": 5_000_000.0}))
    client.perform(AlterQuota(Entity("alice", None), {"consumer_byte_rate": 5_000_000.0}))
    client.close()
    produced(sick, "unread", "kept", "longer", "unclean")
    committed(sick, "night", "kept", 3)
    committed(sick, "late", "longer", 500)
    committed(sick, "whole", "unclean", 10)
    asked: set[str] = set()
    found = found_in(sick, asked)
    assert found.keys() == {
        "kept-forever",
        "kept-longer",
        "unclean",
        "min-isr-above",
        "never-used",
        "not-read",
        "quota-shadowed",
        "quota-of-nobody",
        "group-without-members",
        "offset-out-of-range",
        "clear-listener",
        "no-authorizer",
    }
    for code, name in (("kept-forever", "kept"), ("min-isr-above", "above (3 of 1)"), ("not-read", "unread")):
        assert found[code].endswith(name), found[code]
    assert "night (lag 7)" in found["group-without-members"]
    assert {"idle", "above"} <= set(found["never-used"].rpartition(": ")[2].split(", "))
    assert asked <= READS
