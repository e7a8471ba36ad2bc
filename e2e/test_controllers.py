"""Nodes that are brokers and controllers: three become five and three again, by the resource alone."""

import json

from e2e.cluster_namespace import DATA, Scene
from e2e.kubectl import apply, until
from tests.kube.objects import pool, topic

RACKS = ["a", "b", "c"]
SURVEY = """
import json, sys
from kavka_operator.kafka.client import KafkaClient
survey = KafkaClient(sys.argv[1]).survey()
holders = {number for partition in survey.partitions for number in partition.replicas}
print(json.dumps([sorted(survey.quorum.voters), sorted(holders)]))
"""


def survey(scene: Scene) -> list[list[int]]:
    """The controllers that vote, and the brokers that hold replicas, as the cluster tells them."""
    found: list[list[int]] = json.loads(scene.ask("exec", "producer", "--", "python", "-c", SURVEY, scene.bootstrap))
    return found


def test_controllers_come_and_go_under_load(loaded: Scene) -> None:
    before = loaded.pods()
    loaded.wants(pool("nodes", replicas=5, racks=RACKS, storage=DATA))
    until(lambda: len(loaded.pods()) == 5)
    loaded.until_ready()
    apply(topic("wide", partitions=10, replicationFactor=3), loaded.namespace)
    loaded.until_ready("topics.kavka.dev", "wide")
    assert survey(loaded) == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    loaded.until_more()

    loaded.wants(pool("nodes", replicas=3, racks=RACKS, storage=DATA))
    until(lambda: len(loaded.pods()) == 3)
    loaded.until_ready()
    loaded.until_ready("topics.kavka.dev", "wide")
    assert survey(loaded) == [[0, 1, 2], [0, 1, 2]]
    assert loaded.pods().keys() == before.keys()
    loaded.has_lost_nothing()
