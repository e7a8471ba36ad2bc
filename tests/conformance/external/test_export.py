"""`kavka export` of Apache Kafka and of Kavka: what it prints, applied, is adopted without a single write."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import load
from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.plan import AlterQuota, CreateTopic
from kavka_operator.kafka.client import KafkaClient
from tests.conformance.external.test_thousands import WRITES, Scene
from tests.support.servers import Server, start_apache_kafka, start_server
from tests.support.waiting import until_outside
from tests.unit.operator.person import run

TOPICS = {
    "orders": CreateTopic("orders", 3, 1, {"retention.ms": "3600000", "cleanup.policy": "compact"}),
    "Clicks_of.EU": CreateTopic("Clicks_of.EU", 1, 1, {}),
    "clicks-of.eu": CreateTopic("clicks-of.eu", 2, 1, {"max.message.bytes": "2097152"}),
}
QUOTAS: dict[AnyEntity, dict[str, float]] = {
    Entity("alice", "etl"): {"producer_byte_rate": 10485760.0, "request_percentage": 12.5},
    Entity("alice", DEFAULT): {"consumer_byte_rate": 1000001.0},
    Entity(DEFAULT, None): {"controller_mutation_rate": 3.5},
    IpEntity("10.0.0.1"): {"connection_creation_rate": 20.0},
    IpEntity(DEFAULT): {"connection_creation_rate": 50.0},
}


@pytest.fixture(
    scope="module", params=[pytest.param(start_apache_kafka, marks=pytest.mark.java, id="Apache Kafka"), start_server]
)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    start: Callable[[Path], Server] = request.param
    running = start(tmp_path_factory.mktemp("exported"))
    client = KafkaClient(running.bootstrap)
    for topic in TOPICS.values():
        client.perform(topic)
    for entity, limits in QUOTAS.items():
        client.perform(AlterQuota(entity, limits))
    until_outside(lambda: client.look(()).quotas == QUOTAS)  # a broker shows a little later what it has answered
    client.close()
    yield running
    running.kill()


def test_what_is_exported_and_applied_changes_nothing(kafka: Server, tmp_path: Path) -> None:
    code, said = run("export", "--bootstrap", kafka.bootstrap, "--cluster", "main")
    assert code == 0, said
    assert "left out" not in said
    path = tmp_path / "exported.yaml"
    path.write_text(said)
    cluster, *others = [declared.resource for declared in load([path])]
    assert isinstance(cluster, KafkaCluster)
    assert cluster.spec.external is not None
    assert cluster.spec.external.bootstrap_servers == kafka.bootstrap
    assert len(others) == len(TOPICS) + len(QUOTAS)
    with Scene({"bootstrapServers": kafka.bootstrap}, *others) as scene:
        calls = scene.settle()
        calls += scene.look()
        assert not WRITES & calls.keys(), calls
        assert scene.not_ready() == []
