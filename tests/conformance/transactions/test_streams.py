"""Kafka Streams with exactly_once_v2 while each broker, and the application, are killed: each count comes once."""

from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.transactions.copying import Application, Topics
from tests.support.nodes import Nodes, cluster
from tools.kafka_jars import streams_class_path
from tools.kafka_jvm import java

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

PER_ROUND = 300
DIGITS = 10


def test_counts_are_exact(tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("Counter.java"))
    command = (*java("256M"), f"-Dstate.dir={tmp_path / 'state'}", "-cp", streams_class_path(), program)
    with cluster(tmp_path) as nodes:
        topics = Topics(nodes)
        application = Application(command, nodes.bootstrap, tmp_path / "application.log")
        application.start()
        try:
            count(nodes, topics)
            for victim in nodes.broker_ids:
                begin_round(nodes, topics)
                nodes.kill(victim)
                count(nodes, topics)
                nodes.start(victim)
                nodes.wait("every replica is in sync", topics.are_in_sync)
            begin_round(nodes, topics)
            application.kill()
            application.start()
            count(nodes, topics)
        finally:
            application.kill()
        assert not application.lines("failed")


def begin_round(nodes: Nodes, topics: Topics) -> None:
    before = topics.committed()
    topics.write(PER_ROUND)
    nodes.wait("counting goes on", lambda: topics.committed() > before)


def count(nodes: Nodes, topics: Topics) -> None:
    """Write more, and see all of it counted."""
    topics.write(PER_ROUND)
    each, more = divmod(topics.written, DIGITS)
    assert not more
    expected = Counter(f"{digit} {number}" for digit in range(DIGITS) for number in range(1, each + 1))
    found = Counter[str]()

    def is_all_there() -> bool:
        found.clear()
        found.update(topics.read())
        assert found <= expected, f"more than once: {found - expected}"
        return found == expected

    nodes.wait("everything is counted", is_all_there)
