"""Consume, transform, produce while brokers and the application are killed: each record is copied once.

Java's client leaves adding partitions to their leaders and has an epoch for each transaction (version 2); librdkafka
and Java's client before 4.0 add them themselves and keep their epoch (version 1).
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.transactions.copying import INPUT, OUTPUT, PYTHON, Application, Topics, java_copier
from tests.support.nodes import Nodes, cluster
from tests.support.quorum import active_controller
from tools.kafka_jars import former_client_class_path

pytestmark = [pytest.mark.slow, pytest.mark.extended]

PER_ROUND = 200
TRANSACTION_STATE, OFFSETS = "__transaction_state", "__consumer_offsets"


def test_librdkafka_copies_each_record_once(tmp_path: Path) -> None:
    copy_all(tmp_path, PYTHON)


@pytest.mark.java
def test_java_copies_each_record_once(tmp_path: Path) -> None:
    copy_all(tmp_path, java_copier())


@pytest.mark.java
def test_java_of_version_1_copies_each_record_once(tmp_path: Path) -> None:
    """The client of Apache Kafka 3.9."""
    copy_all(tmp_path, java_copier(former_client_class_path()))


def copy_all(tmp_path: Path, command: tuple[str, ...]) -> None:
    with cluster(tmp_path) as nodes:
        topics = Topics(nodes)
        application = Application(command, nodes.bootstrap, tmp_path / "application.log")
        application.start()
        try:
            survive_all(nodes, topics, application)
        finally:
            application.kill()
        judge(nodes, topics)
        assert not application.lines("fatal")


def survive_all(nodes: Nodes, topics: Topics, application: Application) -> None:
    """Kill those that a transaction needs, one after the other."""
    topics.write(PER_ROUND)
    nodes.wait("everything is copied", lambda: topics.committed() == topics.written)
    survive(nodes, topics, application, topics.leader(OUTPUT, 0))
    survive(nodes, topics, application, topics.coordinator(TRANSACTION_STATE))
    survive(nodes, topics, application, topics.coordinator(OFFSETS))
    survive(nodes, topics, application, active_controller(nodes))
    survive(nodes, topics, application, topics.leader(INPUT, 1))
    begin_round(nodes, topics, application)
    application.kill()
    application.start()
    end_round(nodes, topics)


def survive(nodes: Nodes, topics: Topics, application: Application, victim: int) -> None:
    """Kill a node between transactions or within one, and have it back when everything is copied without it."""
    begin_round(nodes, topics, application)
    nodes.kill(victim)
    end_round(nodes, topics)
    nodes.start(victim)
    nodes.wait("every replica is in sync", topics.are_in_sync)


def begin_round(nodes: Nodes, topics: Topics, application: Application) -> None:
    before = len(application.lines("committed"))
    topics.write(PER_ROUND)
    nodes.wait("copying goes on", lambda: len(application.lines("committed")) > before)


def end_round(nodes: Nodes, topics: Topics) -> None:
    topics.write(PER_ROUND)
    nodes.wait("everything is copied", lambda: topics.committed() == topics.written)


def judge(nodes: Nodes, topics: Topics) -> None:
    """The group has committed all offsets with their transactions, so nothing more than the copies may come."""
    expected = Counter(f"copied {number}" for number in range(topics.written))
    found = Counter[str]()

    def is_all_there() -> bool:
        # Offsets and records are of one transaction, whose markers are written one after the other.
        found.clear()
        found.update(topics.read())
        return expected <= found

    nodes.wait("every copy is committed", is_all_there)
    assert found == expected, f"more than once, or aborted: {found - expected}"
