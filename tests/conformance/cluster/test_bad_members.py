"""Processes that must not become members: they are refused, both sides say why, and the cluster works on."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import Nodes, Place, apart, format_node, write_properties
from tests.support.servers import POLL_SECONDS, Server, is_apache_kafka
from tests.support.wire import brokers_registered

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(is_apache_kafka(), reason="what Kavka's logs say"),
    pytest.mark.extended,
]

SECONDS_MAX = 60.0
ELSEWHERE = "ZWxzZXdoZXJlLWVsc2V3aA"
SETTINGS = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
BROKER, CONTROLLER = 1, 100


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A controller and a broker, and the settings by which others would join them."""
    home = tmp_path_factory.mktemp("members")
    made = Nodes(apart(controllers=1, brokers=1))
    for place in made.places:
        made.servers[place.node_id] = candidate(home / f"node-{place.node_id}", place, made)
    try:
        made.start()
        yield made
    finally:
        made.end()


def candidate(home: Path, place: Place, nodes: Nodes, cluster_id: str | None = None) -> Server:
    home.mkdir()
    config = write_properties(home, place, nodes.places, SETTINGS, static=False)
    program = format_node(home, place, nodes.places, config, static=False)
    if cluster_id is not None:
        meta = home / "data" / "meta.properties"
        lines = [line for line in meta.read_text().splitlines() if not line.startswith("cluster.id=")]
        meta.write_text("\n".join([*lines, f"cluster.id={cluster_id}", ""]))
    return Server([*program, str(config)], ("127.0.0.1", place.port), home)


def wait_for(server: Server, *words: str) -> None:
    """Until a line of its log has all of these."""
    deadline = time.monotonic() + SECONDS_MAX
    while not any(all(word in line for word in words) for line in server.log_lines()):
        assert time.monotonic() < deadline, f"{words} never said:\n{server.last_lines()}"
        time.sleep(POLL_SECONDS)


def test_a_second_broker_with_one_id_gives_up(nodes: Nodes, tmp_path: Path) -> None:
    second = candidate(tmp_path / "second", Place(BROKER, "broker"), nodes)
    second.launch()
    assert second.process is not None
    try:
        assert second.process.wait(SECONDS_MAX) != 0
        wait_for(second, "another broker runs with node.id=1")
        wait_for(nodes[CONTROLLER], "broker.refused", "DUPLICATE_BROKER_REGISTRATION", "runs already")
        assert brokers_registered(nodes[BROKER].address) == 1
    finally:
        second.kill()


def test_a_node_of_another_cluster_hears_nothing(nodes: Nodes, tmp_path: Path) -> None:
    stranger = candidate(tmp_path / "stranger", Place(2, "broker"), nodes, ELSEWHERE)
    stranger.launch()
    try:
        wait_for(stranger, "raft.fetch.refused", "INCONSISTENT_CLUSTER_ID")
        wait_for(nodes[CONTROLLER], "raft.fetch.misdirected", ELSEWHERE)
        wait_for(stranger, "quorum.awaited")
        assert stranger.stop() == 0
    finally:
        stranger.kill()


def test_a_directory_of_another_node_is_not_used(nodes: Nodes, tmp_path: Path) -> None:
    mistaken = candidate(tmp_path / "mistaken", Place(3, "broker"), nodes)
    config = tmp_path / "mistaken" / "server.properties"
    config.write_text(config.read_text().replace("node.id=3", "node.id=4"))
    mistaken.launch()
    assert mistaken.process is not None
    assert mistaken.process.wait(SECONDS_MAX) != 0
    wait_for(mistaken, "belongs to node 3, not to 4")
