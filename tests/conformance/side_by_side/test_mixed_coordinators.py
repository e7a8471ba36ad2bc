"""Transactions whose coordinator is one product and whose partitions the other leads, and a coordinator that moves.

Transactions of both generations are open, committed and aborted while the coordinator's partition goes from one product
to the other and back.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.side_by_side.products import KAFKA, KAVKA, SETTINGS, become
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
    write,
)
from tests.support.nodes import Nodes, combined, prepare
from tests.support.topics import metadata

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

SECONDS_MAX: Final = 60.0
STATE: Final = "__transaction_state"
OF_KAFKA, OF_KAVKA, THIRD = 1, 2, 3
JAVA_RECORDS: Final = 300
#: Partitions of the topic by the product that leads them.
ON: Final = {KAFKA: 0, KAVKA: 1}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Apache Kafka, Kavka, and a third that keeps the quorum while either is stopped."""
    made = prepare(tmp_path, combined(3), SETTINGS)
    become(made[OF_KAFKA], KAFKA)
    try:
        made.start()
        yield made
    finally:
        made.end()


def create(nodes: Nodes, topic: str, replicas: list[list[int]]) -> None:
    admin = AdminClient({"bootstrap.servers": nodes.bootstrap})
    admin.create_topics([NewTopic(topic, len(replicas), replica_assignment=replicas)])[topic].result(SECONDS_MAX)


def coordinator(nodes: Nodes) -> int:
    leader = metadata(AdminClient({"bootstrap.servers": nodes.bootstrap})).topics[STATE].partitions[0].leader
    assert isinstance(leader, int)
    return leader


def move_coordinator(nodes: Nodes, source: int, target: int) -> None:
    """Stop the broker that coordinates, so that the other one does, and start it again."""
    assert coordinator(nodes) == source
    nodes[source].stop()
    nodes.wait(f"broker {target} coordinates", lambda: coordinator(nodes) == target)
    nodes.start(source)
    nodes.wait("every replica is in sync", lambda: are_in_sync(nodes))


def are_in_sync(nodes: Nodes) -> bool:
    topics = metadata(AdminClient({"bootstrap.servers": nodes.bootstrap})).topics.values()
    return all(len(one.isrs) == len(one.replicas) for topic in topics for one in topic.partitions.values())


def play_all(nodes: Nodes, round_name: str, expected: dict[int, dict[str, int]]) -> None:
    """Commit and abort in partitions of both products, and read what is committed."""
    producer = transactional(nodes.bootstrap, "mixed")
    for partition in ON.values():
        commit(producer, round_name, partition)
        abort(producer, "aborted", partition)
        expected[partition][round_name] = RECORDS
        expect(expected[partition], nodes.bootstrap, partition)


def commit_open(producer: Producer) -> None:
    """Commit what was begun before the coordinator moved: librdkafka asks again until it has found the new one."""
    while True:
        try:
            producer.commit_transaction(SECONDS_MAX)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


@pytest.mark.parametrize(("first", "second"), [(OF_KAFKA, OF_KAVKA), (OF_KAVKA, OF_KAFKA)])
def test_a_coordinator_of_one_product_and_partitions_of_the_other(nodes: Nodes, first: int, second: int) -> None:
    create(nodes, STATE, [[first, second]])
    create(nodes, TOPIC, [[OF_KAFKA, THIRD], [OF_KAVKA, THIRD]])
    create(nodes, JAVA_TOPIC, [[OF_KAFKA, THIRD], [OF_KAVKA, THIRD]])
    nodes.wait("every replica is in sync", lambda: are_in_sync(nodes))
    expected: dict[int, dict[str, int]] = {partition: {} for partition in ON.values()}
    play_all(nodes, "before", expected)
    produce_by_java(nodes.bootstrap, JAVA_RECORDS)

    open_over_the_move = transactional(nodes.bootstrap, "open")
    write(open_over_the_move, "open", ON[KAFKA])
    open_over_the_move.produce(TOPIC, b"open", partition=ON[KAVKA])
    assert open_over_the_move.flush(SECONDS_MAX) == 0
    left = transactional(nodes.bootstrap, "left")
    write(left, "left", ON[KAVKA])
    move_coordinator(nodes, first, second)
    commit_open(open_over_the_move)
    expected[ON[KAFKA]]["open"], expected[ON[KAVKA]]["open"] = RECORDS, 1
    transactional(nodes.bootstrap, "left")  # aborts what was left open
    play_all(nodes, "moved", expected)
    produce_by_java(nodes.bootstrap, JAVA_RECORDS)

    move_coordinator(nodes, second, first)
    play_all(nodes, "back", expected)
    produce_by_java(nodes.bootstrap, JAVA_RECORDS)
    nodes.wait("all of Java's transactions", lambda: java_records(nodes) == 3 * JAVA_RECORDS)


def java_records(nodes: Nodes) -> int:
    return sum(sum(seen(nodes.bootstrap, part, JAVA_TOPIC).values()) for part in ON.values())
