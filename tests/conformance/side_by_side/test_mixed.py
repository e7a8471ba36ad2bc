"""Kavka and Apache Kafka in one quorum and one in-sync set, while a producer and a consumer live through it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from tests.conformance.side_by_side.load import PARTITIONS, load
from tests.conformance.side_by_side.load import TOPIC as LOAD
from tests.conformance.side_by_side.products import KAFKA, SETTINGS, become
from tests.conformance.side_by_side.transacting import (
    JAVA_TOPIC,
    RECORDS,
    TOPIC,
    abort,
    commit,
    expect,
    produce_by_java,
    seen,
    transactional,
)
from tests.support.nodes import Nodes, combined, prepare
from tests.support.topics import metadata

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

SECONDS_MAX = 60.0
FIRST, SECOND, KAVKA_NODE = 1, 2, 3
INDEX_ENTRY_BYTES = 34
JAVA_RECORDS = 500
ON_KAFKA, ON_KAVKA = 0, 1  # partitions by the product that leads them at first
COMMITTED = {"first": RECORDS, "second": RECORDS}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = prepare(tmp_path, combined(3), SETTINGS)
    for node_id in (FIRST, SECOND):
        become(made[node_id], KAFKA)
    try:
        made.start()
        yield made
    finally:
        made.end()


class Cluster:
    """What an administrator sees of these nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._admin = AdminClient({"bootstrap.servers": nodes.bootstrap})

    def create(self, topic: str, replicas: list[list[int]]) -> None:
        made = self._admin.create_topics([NewTopic(topic, len(replicas), replica_assignment=replicas)])
        made[topic].result(SECONDS_MAX)

    def partition(self, index: int) -> PartitionMetadata:
        return metadata(self._admin).topics[TOPIC].partitions[index]

    def wait_in_sync(self) -> None:
        def are_in_sync() -> bool:
            topics = metadata(self._admin).topics.values()
            return all(
                sorted(one.isrs) == sorted(one.replicas) for topic in topics for one in topic.partitions.values()
            )

        self._nodes.wait("every replica is in sync", are_in_sync)

    def wait_leader(self, index: int, node_id: int) -> None:
        self._nodes.wait(f"node {node_id} leads", lambda: self.partition(index).leader == node_id)


def indexes(nodes: Nodes, partition: int) -> list[bytes]:
    """The transaction index of each node."""
    found = [sorted((server.data / f"{TOPIC}-{partition}").glob("*.txnindex")) for server in nodes.servers.values()]
    return [b"".join(path.read_bytes() for path in paths) for paths in found]


def have_one_index(nodes: Nodes, partition: int) -> bool:
    first, *others = indexes(nodes, partition)
    return len(first) == INDEX_ENTRY_BYTES and others == [first, first]


def has_three_brokers(nodes: Nodes) -> bool:
    return len(metadata(AdminClient({"bootstrap.servers": nodes.bootstrap})).brokers) == 3


def test_kavka_and_apache_kafka_serve_one_cluster(nodes: Nodes) -> None:
    cluster = Cluster(nodes)
    nodes.wait("three brokers", lambda: has_three_brokers(nodes))
    cluster.create(LOAD, [[1, 2, 3], [2, 3, 1], [3, 1, 2]][:PARTITIONS])
    # Apache Kafka coordinates the transactions; test_mixed_coordinators.py moves that.
    cluster.create("__transaction_state", [[FIRST, SECOND]])
    cluster.create(JAVA_TOPIC, [[KAVKA_NODE, FIRST, SECOND]])
    cluster.create(TOPIC, [[FIRST, KAVKA_NODE, SECOND], [KAVKA_NODE, FIRST, SECOND]])
    with load(nodes.bootstrap, nodes.servers.values()):
        producer = transactional(nodes.bootstrap, "mixed")
        for partition in (ON_KAFKA, ON_KAVKA):
            commit(producer, "first", partition)
            abort(producer, "aborted", partition)
            commit(producer, "second", partition)
            expect(COMMITTED, nodes.bootstrap, partition)
        produce_by_java(nodes.bootstrap, JAVA_RECORDS)
        nodes.wait(
            "all of Java's transactions", lambda: sum(seen(nodes.bootstrap, topic=JAVA_TOPIC).values()) == JAVA_RECORDS
        )

        cluster.wait_in_sync()
        for partition in (ON_KAFKA, ON_KAVKA):
            # A replica counts as in sync while it is a little behind.
            nodes.wait("one transaction index everywhere", partial(have_one_index, nodes, partition))

        nodes[FIRST].stop()
        cluster.wait_leader(ON_KAFKA, KAVKA_NODE)
        expect(COMMITTED, nodes.bootstrap, ON_KAFKA)
        nodes.start(FIRST)
        cluster.wait_in_sync()

        nodes[KAVKA_NODE].stop()
        become(nodes[KAVKA_NODE], KAFKA)
        nodes.start(KAVKA_NODE)
        cluster.wait_in_sync()
        nodes[FIRST].stop()
        cluster.wait_leader(ON_KAFKA, KAVKA_NODE)
        expect(COMMITTED, nodes.bootstrap, ON_KAFKA)
        expect(COMMITTED, nodes.bootstrap, ON_KAVKA)
        nodes.start(FIRST)
