"""The same scripts on three Apache Kafka nodes and on three of Kavka: clients are told the same.

What Apache Kafka says is in the scripts. `pytest tests/conformance/differential --rewrite -k apache-kafka` lets it say
it again; read the diff before you commit it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.network import Loopback
from tests.chaos.nodes import APACHE_KAFKA, KAVKA, Cluster, make_cluster
from tests.conformance.differential.script import Player

pytestmark = pytest.mark.slow

SCRIPTS = sorted((Path(__file__).parents[2] / "scripts/cluster").glob("*.txt"))
SETTINGS = {
    # What these do by themselves, at a time of their own, would be in one run and not in the next.
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
}


@pytest.fixture(
    scope="module", params=[KAVKA, pytest.param(APACHE_KAFKA, marks=pytest.mark.java)], ids=[KAVKA, APACHE_KAFKA]
)
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
