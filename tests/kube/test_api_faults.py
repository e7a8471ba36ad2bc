"""The operator against an API server that is slow, refuses, loses its answers, or tells what was: brokers are rolled.

The brokers are real, and a client produces all the while. Whatever the API server does, each broker is restarted once,
none while the partitions need it, and in the end all is as it was asked for, and nothing more is written. A commit
plays one of the faults, another commit another: the roll is the same, and takes minutes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.cluster.history import History, create_topic
from tests.kube.cluster import Kubernetes
from tests.kube.objects import topic
from tests.kube.test_drain import Machines, Producing, machines, nodes, uids
from tests.kube.test_operator import Operated
from tests.kube.test_pods import of_pods
from tests.support.drawn import in_turn
from tests.support.faulty_api import Conflicts, Expired, Fault, FaultyApi, Lost, Slow, Stale, faulty
from tests.support.nodes import Nodes
from tests.support.waiting import until_outside

__all__ = ["machines", "nodes"]
FAULTS: dict[str, type[Fault]] = {
    "slow": Slow,
    "conflicts": Conflicts,
    "answers lost": Lost,
    "expired": Expired,
    "stale": Stale,
}
READY = ("KafkaCluster", "pods")
SECONDS_MAX = 240.0
"""Each object is written twice, with a pause in between: longer than other tests wait."""


@pytest.fixture(params=in_turn([*FAULTS], len(FAULTS)))
def api(kubernetes: Kubernetes, request: pytest.FixtureRequest) -> Iterator[FaultyApi]:
    with faulty(kubernetes.plane, FAULTS[request.param]()) as made:
        yield made


@pytest.fixture
def operated(api: FaultyApi, kubernetes: Kubernetes, nodes: Nodes, tmp_path: Path) -> Iterator[Operated]:
    """An operator that asks the API server by way of the fault."""
    scene = Operated(kubernetes, nodes, tmp_path / "operator.log")
    scene.start(KUBECONFIG=str(api.kubeconfig(tmp_path / "kubeconfig")))
    yield scene
    scene.stop()


def until_ready(operated: Operated, kind: str, name: str) -> None:
    until_outside(lambda: operated.condition(kind, name) == ("True", "Ready"), SECONDS_MAX)


def begin(operated: Operated) -> None:
    """Apply three brokers, and wait until they are ready."""
    assert operated.kubernetes.apply(of_pods(3)).is_well
    until_ready(operated, *READY)


def test_a_roll_restarts_each_broker_once_and_loses_nothing(
    api: FaultyApi, operated: Operated, machines: Machines
) -> None:
    begin(operated)
    create_topic(machines.nodes)
    producing = Producing(History(machines.nodes))
    seen = [uids(operated, machines)]
    assert operated.kubernetes.apply(of_pods(3, config={"queued.max.requests": 400})).is_well

    def is_rolled() -> bool:
        now = uids(operated, machines)
        if now != seen[-1]:
            seen.append(now)
        return len(now) == 3 and not set(now.values()) & set(seen[0].values())

    until_outside(is_rolled, SECONDS_MAX)
    until_outside(lambda: operated.status(*READY)["observedGeneration"] == 2, SECONDS_MAX)
    until_ready(operated, *READY)
    assert api.faults > 0
    assert {name: len({uid[name] for uid in seen if name in uid}) for name in seen[0]} == dict.fromkeys(seen[0], 2)
    producing.has_lost_nothing()
    topics_follow(operated)


def topics_follow(operated: Operated) -> None:
    """A Topic is made, changed and deleted, and then all rests."""
    kubernetes = operated.kubernetes
    assert kubernetes.create(topic("orders", partitions=1, clusterRef={"name": "pods"})).is_well
    until_ready(operated, "Topic", "orders")
    assert kubernetes.apply(topic("orders", partitions=2, clusterRef={"name": "pods"})).is_well
    until_outside(lambda: operated.status("Topic", "orders").get("partitions") == 2, SECONDS_MAX)
    until_ready(operated, "Topic", "orders")
    until_outside(lambda: is_at_rest(operated), SECONDS_MAX)
    assert kubernetes.kubectl("delete", "topics.kavka.dev", "orders", "--wait=false").returncode == 0
    until_outside(lambda: operated.is_gone("Topic", "orders"), SECONDS_MAX)


def is_at_rest(operated: Operated) -> bool:
    """Whether nothing was written while the operator asked Kafka ten times."""
    log, written = operated.log, len(operated.writes())
    asked = log.read_text().count("asked ")
    operated.until(lambda: log.read_text().count("asked ") > asked + 10)
    return len(operated.writes()) == written
