"""Kavka and Apache Kafka in one quorum: each leads, follows and observes the other."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.nodes import Nodes, Place, apart, format_node, write_properties
from tests.support.programs import kafka_tool
from tests.support.servers import Server

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

SETTINGS = {"default.replication.factor": "1", "min.insync.replicas": "1", "offsets.topic.replication.factor": "1"}
BROKER = 1


def mixed(directory: Path, kafkas: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> Nodes:
    """Three controllers, of which these run Apache Kafka, and a broker of Kavka's."""
    nodes = Nodes(apart(controllers=3, brokers=1))
    for place in nodes.places:
        monkeypatch.setenv("KAVKA_TEST_SERVER", "apache-kafka" if place.node_id in kafkas else "")
        nodes.servers[place.node_id] = formatted(directory / f"node-{place.node_id}", place, nodes.places)
    return nodes


def formatted(home: Path, place: Place, places: Sequence[Place]) -> Server:
    home.mkdir(parents=True)
    config = write_properties(home, place, places, SETTINGS, static=False)
    program = format_node(home, place, places, config, static=False)
    return Server([*program, str(config)], ("127.0.0.1", place.port), home)


@pytest.fixture(params=[(100,), (100, 101)], ids=["one Kafka", "two Kafkas"])
def nodes(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    made = mixed(tmp_path, request.param, monkeypatch)
    try:
        made.start()
        yield made
    finally:
        made.end()


def describe(nodes: Nodes, how: str) -> str:
    return kafka_tool("metadata-quorum", "--bootstrap-server", nodes.bootstrap, "describe", how)


def leader(nodes: Nodes) -> int:
    found = re.search(r"LeaderId:\s+(-?\d+)", describe(nodes, "--status"))
    assert found is not None
    return int(found[1])


def create(nodes: Nodes, topic: str) -> None:
    kafka_tool(
        "topics", "--bootstrap-server", nodes.bootstrap, "--create", "--topic", topic,
        "--partitions", "3", "--replication-factor", "1",
    )  # fmt: skip


def lag(nodes: Nodes, node_id: int) -> int:
    """How far a node is behind, -1 where the leader has not heard of it."""
    for line in describe(nodes, "--replication").splitlines()[1:]:
        row = line.split()
        if row and int(row[0]) == node_id:
            return int(row[2]) if row[2] == "-1" else int(row[3])
    return -1


def test_the_others_follow_whichever_node_leads(nodes: Nodes) -> None:
    create(nodes, "first")
    former = leader(nodes)
    nodes.kill(former)
    nodes.wait("another leads", lambda: leader(nodes) not in (former, -1))
    create(nodes, "second")
    nodes[former].launch()
    # Apache Kafka's log is never still, so that a follower is often a record behind.
    nodes.wait("the one that was killed follows", lambda: 0 <= lag(nodes, former) <= 20)
    nodes.wait("the broker observes", lambda: 0 <= lag(nodes, BROKER) <= 20)
    listed = kafka_tool("topics", "--bootstrap-server", nodes.bootstrap, "--list").split()
    assert listed == ["first", "second"]
