"""The API server dies under the operator and comes back: what changed is done, and then nothing is written."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes, install
from tests.kube.objects import topic
from tests.kube.test_operator import CLUSTER, Operated
from tests.support.control_plane import ControlPlane
from tests.support.servers import Server, start_server

NAMESPACE = "away"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of its own, as its API server dies."""
    with ControlPlane(tmp_path) as plane:
        install(plane)
        yield plane


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Server]:
    running = start_server(tmp_path / "broker")
    yield running
    running.kill()


@pytest.fixture
def operated(plane: ControlPlane, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    with closing(plane.api()) as api:
        kubernetes = Kubernetes(plane, api, NAMESPACE)
        kubernetes.begin()
        scene = Operated(kubernetes, broker, tmp_path / "operator.log")
        yield scene
        scene.stop()


def test_what_happens_while_the_api_server_is_away_is_done_when_it_is_back(operated: Operated) -> None:
    kubernetes = operated.kubernetes
    assert kubernetes.create(CLUSTER).is_well
    assert kubernetes.create(topic("orders", partitions=2)).is_well
    operated.start()
    operated.until_ready(("KafkaCluster", "main"), ("Topic", "orders"))
    asked = operated.log.read_text().count("asked ")
    kubernetes.plane.kill_api()
    operated.until(lambda: operated.log.read_text().count("asked ") > asked)  # it looks at Kafka all the same
    kubernetes.plane.start_api()
    with closing(kubernetes.plane.api()) as api:
        later = Operated(Kubernetes(kubernetes.plane, api, NAMESPACE), operated.broker, operated.log)
        assert later.kubernetes.apply(topic("orders", partitions=3)).is_well
        later.until(lambda: later.status("Topic", "orders").get("partitions") == 3)
        assert later.kubernetes.create(topic("more", partitions=1)).is_well
        later.until_ready(("Topic", "more"), ("Topic", "orders"))
        later.at_rest()
    assert operated.running is not None
    assert operated.running.poll() is None
