"""A thousand topics and a thousand quotas on an Apache Kafka that somebody else runs: how often it is asked."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.plan import AlterQuota, AlterTopic
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.loop.cluster_loop import ClusterLoop
from kavka_operator.platform.external import ExternalPlatform, ReadSecret
from tests.support.servers import CLUSTER_ID, Server, start_apache_kafka
from tests.support.waiting import until_outside
from tests.unit.operator.fakes import FakePlatform, FakeResources, FakeSecrets, quota, topic

pytestmark = [pytest.mark.java]

COUNT = 1000
CALLS_MAX = 20
SECONDS_MAX = 180.0
WRITES = {"CreateTopics", "AlterClientQuotas", "IncrementalAlterConfigs", "CreatePartitions", "DeleteTopics"}


class Counted(KafkaClient):
    """Counts requests by the name of their API."""

    calls: ClassVar[Counter[str]] = Counter()

    def _send(self, request: Any, node: int | None = None) -> Any:
        self.calls[type(request).__name__.removesuffix("Request")] += 1
        return super()._send(request, node)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("external")
    running = start_apache_kafka(directory)
    yield running
    running.kill()


def no_secret(name: str) -> dict[str, str]:
    raise AssertionError(f"nobody named {name}")


class Scene:
    """The loop of an external cluster, with resources in memory and a Kafka that is real.

    `external` is what the KafkaCluster says of it, `read_secret` has the Secrets that it names; those of users are in
    memory.
    """

    def __init__(
        self, external: Mapping[str, Any], *resources: AnyResource, read_secret: ReadSecret = no_secret
    ) -> None:
        self.cluster = KafkaCluster.decode({"metadata": {"name": "main"}, "spec": {"external": external}})
        self.secrets = FakeSecrets()
        self.wanted = resources
        self.resources = FakeResources(self.cluster, *resources)
        self.seconds = 0.0
        self.told: list[str] = []
        self.nodes = FakePlatform()
        self.loop = ClusterLoop(
            self.resources,
            ExternalPlatform(self.nodes, read_secret, lambda: self.seconds),
            self._connect,
            self.told.append,
            lambda: None,
            lambda: self.seconds,
            lambda: datetime.now(UTC).replace(microsecond=0),
            secrets=self.secrets,
        )

    def _connect(self, bootstrap: str, security: Security = OPEN) -> KafkaClient:
        return Counted(bootstrap, security)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.close()

    def look(self) -> Counter[str]:
        """Look once, when that is due; the requests of it."""
        self.seconds += self.loop.seconds_left
        Counted.calls.clear()
        question = self.loop.due()
        assert question is not None
        self.loop.follow(self.loop.look(question))
        return Counter(Counted.calls)

    def settle(self) -> Counter[str]:
        """Look until all is as wanted; the requests of it. A broker hears of a change some time after it was made."""
        calls = Counter[str]()

        def is_settled() -> bool:
            calls.update(self.look())
            return self.not_ready() == []

        until_outside(is_settled, SECONDS_MAX)
        return calls

    def not_ready(self) -> list[str]:
        return [
            f"{resource.identity}: {condition}"
            for resource in (self.cluster, *self.wanted)
            for condition in self.resources.status(resource)["conditions"]
            if (condition["type"], condition["status"]) == ("Ready", "False")
        ]


def quotas(count: int) -> list[AnyResource]:
    return [
        quota(f"q{number}", {"clientId": {"name": f"client-{number}"}}, {"producerByteRate": 1_000_000 + number})
        for number in range(count)
    ]


def topics(count: int) -> list[AnyResource]:
    return [topic(f"t{number}", partitions=1, replicationFactor=1) for number in range(count)]


def test_a_thousand_quotas_take_few_requests_and_at_rest_none_writes(kafka: Server) -> None:
    with Scene({"bootstrapServers": kafka.bootstrap}, *quotas(COUNT)) as scene:
        calls = scene.look()
        assert calls["AlterClientQuotas"] == COUNT // 200
        assert sum(calls.values()) <= CALLS_MAX, calls
        scene.settle()
        before = scene.resources.writes
        assert not WRITES & scene.look().keys()
        assert scene.resources.writes == before

        client = KafkaClient(kafka.bootstrap)
        client.perform(AlterQuota(Entity(None, "client-7"), {"producer_byte_rate": 5.0}))
        client.perform(AlterQuota(Entity(None, "client-8"), {"consumer_byte_rate": 5.0}))
        until_outside(lambda: scene.look()["AlterClientQuotas"] == 1)
        scene.settle()
        found = client.look(()).quotas
        assert found[Entity(None, "client-7")] == {"producer_byte_rate": 1_000_007.0}
        assert found[Entity(None, "client-8")] == {"producer_byte_rate": 1_000_008.0, "consumer_byte_rate": 5.0}
        status = scene.resources.status(scene.wanted[7])
        assert "put back" in status["conditions"][0]["message"]
        assert scene.resources.status(scene.wanted[8])["unmanaged"] == {"consumer_byte_rate": 5.0}
        client.close()
        cluster = scene.resources.status(scene.cluster)
        assert (cluster["clusterId"], cluster["brokers"], cluster["nodes"][0]["state"]) == (CLUSTER_ID, 1, "Running")
        assert cluster["activeController"] == 1
        assert scene.nodes.actions == []


def test_a_thousand_topics_are_made_together_and_drift_is_put_back(kafka: Server) -> None:
    with Scene({"bootstrapServers": kafka.bootstrap}, *topics(COUNT)) as scene:
        assert scene.look()["CreateTopics"] <= CALLS_MAX
        scene.settle()  # a broker that has not heard of a topic yet is asked to make it again
        scene.look()
        before = scene.resources.writes
        assert not WRITES & scene.look().keys()
        assert scene.resources.writes == before
        scene.resources.put(topic("t3", partitions=1, replicationFactor=1, config={"retention.ms": 1_000_000}))
        scene.settle()
        client = KafkaClient(kafka.bootstrap)
        client.perform(AlterTopic("t3", {"retention.ms": "5000000"}))
        until_outside(lambda: scene.look()["IncrementalAlterConfigs"] == 1)
        scene.settle()
        assert client.look(["t3"]).topics["t3"].overrides["retention.ms"] == "1000000"
        client.close()


def test_limits_that_apache_kafka_does_not_know_are_refused_with_its_words(kafka: Server) -> None:
    observed = quota("observed", {"clientId": {"name": "seen"}}, {"producerByteRate": 5}, mode="Observe")
    whole = quota("whole", {"clientId": {"name": "whole"}}, {"producerByteRate": 500}, scope="Cluster")
    named = quota("named", {"user": {"name": "alice"}}, {"producerByteRate": 500})
    with Scene({"bootstrapServers": kafka.bootstrap}, observed, whole, named) as scene:
        scene.look()
        until_outside(lambda: scene.look() and len(scene.not_ready()) == 1)
        reasons = [scene.resources.status(resource)["conditions"][0]["reason"] for resource in (observed, whole, named)]
        assert reasons == ["Rejected", "Ready", "Ready"]
        assert {found["type"] for found in scene.resources.status(named)["conditions"]} == {"Ready"}
