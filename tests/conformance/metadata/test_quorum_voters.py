"""Voters that come and go while the cluster runs, by Kafka's own tool; Kafka's tools read what each node wrote."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import Nodes, apart, cluster
from tests.support.programs import kafka_tool

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

SETTINGS = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "metadata.log.max.record.bytes.between.snapshots": "1000",
}
LEAVER = 102


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three controllers, and a broker that observes."""
    with cluster(tmp_path_factory.mktemp("voters"), apart(controllers=3, brokers=1), SETTINGS) as running:
        yield running


def roles(nodes: Nodes) -> dict[int, str]:
    """What the leader says of each node: Leader, Follower or Observer."""
    said = kafka_tool("metadata-quorum", "--bootstrap-server", nodes.bootstrap, "describe", "--replication")
    rows = [line.split() for line in said.splitlines()[1:] if line.strip()]
    return {int(row[0]): row[-1] for row in rows}


def directory_id(nodes: Nodes, node_id: int) -> str:
    return next(place.directory_id for place in nodes.places if place.node_id == node_id)


def test_a_controller_loses_its_vote_and_gets_it_back(nodes: Nodes) -> None:
    wanted = ["Follower", "Follower", "Leader", "Observer"]
    nodes.wait(
        "three vote, one observes",
        lambda: sorted((found := roles(nodes)).values()) == wanted and found[1] == "Observer",
    )
    kafka_tool(
        "metadata-quorum", "--bootstrap-server", nodes.bootstrap, "remove-controller",
        "--controller-id", str(LEAVER), "--controller-directory-id", directory_id(nodes, LEAVER),
    )  # fmt: skip
    nodes.wait("the controller that was removed observes", lambda: roles(nodes).get(LEAVER) == "Observer")
    first, *_ = nodes.bootstrap_controllers.split(",")
    kafka_tool(
        "metadata-quorum", "--bootstrap-controller", first,
        "--command-config", str(nodes[LEAVER].directory / "server.properties"), "add-controller",
    )  # fmt: skip
    nodes.wait("the controller that was added votes", lambda: roles(nodes).get(LEAVER) in ("Follower", "Leader"))


def test_a_voter_that_is_none_is_not_found(nodes: Nodes) -> None:
    with pytest.raises(AssertionError, match="VoterNotFoundException"):
        kafka_tool(
            "metadata-quorum", "--bootstrap-server", nodes.bootstrap, "remove-controller",
            "--controller-id", "77", "--controller-directory-id", directory_id(nodes, LEAVER),
        )  # fmt: skip


def test_kafkas_dump_reads_the_log_and_the_snapshots_of_every_node(nodes: Nodes) -> None:
    for server in nodes.servers.values():
        directory: Path = server.data / "__cluster_metadata-0"
        logs = sorted(directory.glob("*.log"))
        assert logs
        for path in [*logs, *directory.glob("*.checkpoint")]:
            dumped = kafka_tool("dump-log", "--cluster-metadata-decoder", "--files", str(path))
            assert "isvalid: false" not in dumped
            assert "could not" not in dumped.lower()
