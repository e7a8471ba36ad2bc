"""A cluster that stops answering, on a real API server: its topics and quotas become Unknown, and come back."""

import json
from pathlib import Path

from tests.kube.cluster import Kubernetes, verdict
from tests.kube.objects import quota, topic
from tests.kube.test_operator import CLUSTER, Operated
from tests.support.servers import start_server

SILENT = ("Unknown", "ClusterUnavailable")
TOLD = (("Topic", "orders"), ("ClientQuota", "clicks"))


def test_what_belongs_to_a_silent_cluster_is_unknown_and_comes_back_by_itself(
    kubernetes: Kubernetes, tmp_path: Path
) -> None:
    place = tmp_path / "broker"
    place.mkdir()
    broker = start_server(place)
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    try:
        orders, clicks = topic("orders", partitions=2), quota("clicks")
        for resource in (CLUSTER, orders, clicks):
            assert kubernetes.create(resource).is_well
        scene.start()
        scene.until_ready(("KafkaCluster", "main"), *TOLD)
        broker.kill()
        scene.until(lambda: [scene.condition(*key) for key in TOLD] == [SILENT, SILENT])
        scene.until(lambda: scene.condition("KafkaCluster", "main") == ("False", "NotAnswering"))
        assert [verdict(kubernetes.get(*key)) for key in TOLD] == ["InProgress", "InProgress"]
        shown = json.loads(kubernetes.shows("get", "topics.kavka.dev", "orders", "--output", "json"))["status"]
        assert 'KafkaCluster "main" does not answer' in shown["conditions"][0]["message"]
        assert shown["partitions"] == 2
        broker.start()
        scene.until_ready(("KafkaCluster", "main"), *TOLD)
    finally:
        scene.stop()
        broker.kill()
