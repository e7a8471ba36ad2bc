"""The lag of a group in the metrics of its coordinator, of partitions that three brokers lead."""

import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from tests.conformance.side_by_side.transacting import transactional
from tests.support.nodes import Nodes, combined, prepare
from tests.support.servers import free_port

TOPIC, GROUP = "orders", "readers"
RECORDS, OPEN, READ = 40, 7, 10
BROKERS: Final = (1, 2, 3)
SECONDS_MAX: Final = 60.0
SETTINGS: Final = {"kavka.group.lag.interval.ms": "200", "offsets.topic.num.partitions": "1"}
Lag = dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Watched:
    """Three brokers and the addresses of their metrics."""

    nodes: Nodes
    pages: dict[int, str]

    def lag(self, broker: int) -> Lag:
        """What a broker tells of lag, by metric and isolation level."""
        with urllib.request.urlopen(f"http://{self.pages[broker]}/metrics", timeout=SECONDS_MAX) as page:
            families = text_string_to_metric_families(page.read().decode())
        return {
            (sample.name, sample.labels["isolation_level"]): sample.value
            for family in families
            for sample in family.samples
            if sample.labels.get("group") == GROUP and sample.labels["topic"] == TOPIC
        }


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    nodes = prepare(tmp_path, combined(3), SETTINGS)
    pages = {number: f"127.0.0.1:{free_port()}" for number in BROKERS}
    for number, address in pages.items():
        with (nodes[number].directory / "server.properties").open("a") as properties:
            properties.write(f"kavka.admin.listener={address}\n")
    try:
        nodes.start()
        yield Watched(nodes, pages)
    finally:
        nodes.end()


def written(nodes: Nodes) -> Producer:
    """Write to a partition of each broker; a transaction with more records stays open in the first."""
    admin = AdminClient({"bootstrap.servers": nodes.bootstrap})
    wanted = NewTopic(TOPIC, num_partitions=3, replica_assignment=[[number] for number in BROKERS])
    admin.create_topics([wanted])[TOPIC].result(SECONDS_MAX)
    plain = Producer({"bootstrap.servers": nodes.bootstrap})
    for index in range(len(BROKERS)):
        for _ in range(RECORDS):
            plain.produce(TOPIC, b"x", partition=index)
    assert plain.flush(SECONDS_MAX) == 0
    producer = transactional(nodes.bootstrap, "open")
    producer.begin_transaction()
    for _ in range(OPEN):
        producer.produce(TOPIC, b"x", partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    return producer


def committed(nodes: Nodes, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": GROUP})
    places = [TopicPartition(TOPIC, index, offset) for index, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def records_of(found: Lag) -> dict[str, float]:
    return {level: value for (name, level), value in found.items() if name == "kavka_group_lag_records"}


def test_the_coordinator_tells_the_lag_on_partitions_of_all_brokers(watched: Watched) -> None:
    nodes = watched.nodes
    producer = written(nodes)
    committed(nodes, READ, READ, READ)
    behind = 3 * (RECORDS - READ)
    expected = {"read_uncommitted": behind + OPEN, "read_committed": behind}

    def telling() -> list[int]:
        return [number for number in BROKERS if records_of(watched.lag(number)) == expected]

    nodes.wait("the coordinator tells the lag", lambda: len(telling()) == 1)
    (coordinator,) = telling()
    assert all(not watched.lag(number) for number in BROKERS if number != coordinator)
    nodes.wait("the age of unread records is known", lambda: len(watched.lag(coordinator)) == 4)
    ages = {level: age for (name, level), age in watched.lag(coordinator).items() if name == "kavka_group_lag_seconds"}
    assert all(0 < age < 600 for age in ages.values()), ages

    producer.commit_transaction(SECONDS_MAX)
    committed(nodes, RECORDS + OPEN + 1, RECORDS, RECORDS)  # with the marker
    at_the_end = dict.fromkeys(expected, 0.0)
    nodes.wait("the group is at the end", lambda: records_of(watched.lag(coordinator)) == at_the_end)
    assert set(watched.lag(coordinator).values()) == {0.0}

    nodes[next(number for number in BROKERS if number != coordinator)].kill()
    nodes.wait("what is not known has no series", lambda: not watched.lag(coordinator))
