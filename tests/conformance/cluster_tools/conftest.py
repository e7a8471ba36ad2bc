"""Three nodes for all tests of this folder: Kavka's, or Apache Kafka's with KAVKA_TEST_SERVER=apache-kafka."""

from collections.abc import Callable, Iterator

import pytest

from tests.chaos.asking import partitions_of
from tests.chaos.network import Loopback
from tests.chaos.nodes import APACHE_KAFKA, KAVKA, Cluster, make_cluster
from tests.support.programs import kafka_tool
from tests.support.servers import is_apache_kafka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

NODE_IDS = (1, 2, 3)

SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "2000"}

Tool = Callable[..., str]


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    product = APACHE_KAFKA if is_apache_kafka() else KAVKA
    running = make_cluster(product, NODE_IDS, Loopback(), tmp_path_factory.mktemp("cluster"), SNAPSHOTS)
    try:
        running.start_all()
        yield running
    finally:
        running.close()


@pytest.fixture
def tool(cluster: Cluster) -> Tool:
    """Run one of Kafka's tools against the cluster."""

    def run(name: str, *arguments: str, stdin: str = "") -> str:
        return kafka_tool(name, "--bootstrap-server", cluster.bootstrap, *arguments, stdin=stdin)

    return run


@pytest.fixture
def topic(cluster: Cluster, name: str) -> str:
    """A topic of three partitions, replicated three times, that every node knows."""
    create_topic(cluster, name, 3, 3)
    until_outside(lambda: all(partitions_of(node.address, name) for node in cluster.nodes), what="all know the topic")
    return name
