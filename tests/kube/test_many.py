"""A thousand Topics and a thousand ClientQuotas of one cluster, on a real API server: what they cost, and at rest.

Requests are counted, not seconds, which depend on the machine.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes
from tests.kube.objects import quota
from tests.kube.test_operator import Operated, broker, operated, own_topic
from tests.support.control_plane import Json
from tests.support.waiting import until_outside

__all__ = ["broker", "operated"]

pytestmark = pytest.mark.slow

MANY = 1000
SECONDS_MAX = 600.0
LOOKS = 2
READ_IN_A_LOOK = {
    "DescribeClusterRequest", "MetadataRequest", "DescribeConfigsRequest", "DescribeClientQuotasRequest",
    "ListPartitionReassignmentsRequest", "DescribeQuorumRequest", "DescribeLogDirsRequest",
}  # fmt: skip


def made(kubernetes: Kubernetes, resources: list[Json], directory: Path) -> None:
    """Create resources, many at a time."""
    path = directory / "many.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": resources}))
    kubernetes.shows("create", "--filename", str(path))


def asked(scene: Operated) -> Counter[str]:
    """The requests that the operator has sent to Kafka, by their names."""
    lines = scene.log.read_text(errors="replace").splitlines()
    return Counter(line.removeprefix("asked ") for line in lines if line.startswith("asked "))


def ready(scene: Operated, kind: str) -> int:
    """How many resources of a kind are ready."""
    items = scene.kubernetes.get(kind, "").get("items", [])
    conditions = [found for item in items for found in item.get("status", {}).get("conditions", [])]
    return sum((found["type"], found["status"]) == ("Ready", "True") for found in conditions)


def leaders(scene: Operated) -> int:
    """How many partitions the KafkaCluster says that its node leads."""
    return sum(node.get("leaders", 0) for node in scene.status("KafkaCluster", "main").get("nodes", []))


def has_looked(scene: Operated, times: int) -> bool:
    """Whether the operator has looked so often and is ready; asking keeps the test's own connection open."""
    return scene.condition("KafkaCluster", "main")[0] == "True" and asked(scene)["DescribeClientQuotasRequest"] >= times


@pytest.mark.extended
def test_a_thousand_of_each_take_few_requests_and_none_that_writes_at_rest(operated: Operated, tmp_path: Path) -> None:
    place = operated.kubernetes.namespace
    topics = [own_topic(operated, f"t{number}", partitions=1) for number in range(MANY)]
    limits = [quota(f"q{number}", entity={"clientId": {"name": f"{place}-{number}"}}) for number in range(MANY)]
    made(operated.kubernetes, [*topics, *limits], tmp_path)
    operated.start()
    until_outside(lambda: ready(operated, "Topic") == MANY and ready(operated, "ClientQuota") == MANY, SECONDS_MAX)
    found = asked(operated)
    assert found["CreateTopicsRequest"] <= MANY / 200 + 1
    assert found["AlterClientQuotasRequest"] <= MANY / 200 + 1
    operated.until_ready(("KafkaCluster", "main"))
    operated.until(lambda: leaders(operated) == MANY)
    # A write shows at the API server a moment before the operator tells of it: with the next look it has.
    looks = asked(operated)["DescribeClientQuotasRequest"] + 1
    until_outside(lambda: has_looked(operated, looks), SECONDS_MAX)
    begun, written = asked(operated), operated.writes()
    until_outside(lambda: has_looked(operated, looks + LOOKS), SECONDS_MAX)
    assert operated.writes()[len(written) :] == []
    rest = asked(operated) - begun
    assert rest.keys() <= READ_IN_A_LOOK
