"""The same scripts on three Apache Kafka nodes and on three of Kavka: clients are told the same.

What Apache Kafka says is in the scripts. `pytest tests/conformance/differential --rewrite -k apache-kafka` lets it say
it again; read the diff before you commit it. The jars are pinned, so that it says the same: one commit of four asks it
again.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka_broker.protocol.errors import ErrorCode
from tests.chaos.network import Loopback
from tests.chaos.nodes import APACHE_KAFKA, KAVKA, Cluster, make_cluster
from tests.conformance.differential import asking
from tests.conformance.differential.script import Player
from tests.support.drawn import is_turn

pytestmark = pytest.mark.slow

SCRIPTS = sorted((Path(__file__).parents[2] / "scripts/cluster").glob("*.txt"))
SETTINGS = {
    # What these do by themselves, at a time of their own, would be in one run and not in the next.
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
}


ORACLE = [pytest.mark.java, *([] if is_turn(0, 4) else [pytest.mark.extended])]


@pytest.fixture(scope="module", params=[KAVKA, pytest.param(APACHE_KAFKA, marks=ORACLE)], ids=[KAVKA, APACHE_KAFKA])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = make_cluster(request.param, (1, 2, 3), Loopback(), tmp_path_factory.mktemp("cluster"), SETTINGS)
    try:
        running.start_all()
        yield running
    finally:
        running.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_clients_are_told_the_same(cluster: Cluster, script: Path, request: pytest.FixtureRequest) -> None:
    cluster.start_all()
    written = script.read_text()
    played = Player(cluster).play(written)
    if request.config.getoption("--rewrite"):
        script.write_text(played)
        return
    assert played == written


def test_the_leader_is_named_with_its_address(cluster: Cluster) -> None:
    """KIP-951: clients go there without asking for metadata first, also where they have not met that broker yet."""
    cluster.start_all()
    player = Player(cluster)
    player.topic("named", "2,1")
    assert player.until("named", leader="2", isr="1,2").startswith("leader=2")
    leader, other = cluster.node(2).address, cluster.node(3).address
    refusals = [asking.refused_produce(other, "named", version) for version in (9, 10, 12)]
    refusals += [asking.refused_fetch(other, "named", version) for version in (16, 17)]
    assert [refusal.code for refusal in refusals] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 5
    assert [refusal.leader for refusal in refusals] == [-1, 2, 2, 2, 2]
    assert [refusal.addresses for refusal in refusals] == [[], *[[(2, *leader)]] * 4]
