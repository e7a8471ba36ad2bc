"""Warnings of the API server about what Kafka would take in silence: unknown settings, more in-sync than replicas.

A policy of the chart makes them; it is generated from the broker's own tables, and holds nothing up.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
import yaml

from kavka_broker.core.config.broker import KEYS as BROKER_KEYS
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from tests.kube.cluster import Kubernetes, install
from tests.kube.helm import of_kind, rendered
from tests.kube.objects import cluster, pool, topic
from tests.support.control_plane import ControlPlane, Json, kubectl
from tests.support.waiting import until_outside

POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
KEYS_MAX = 256
SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def warned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    """A control plane with the chart's policies in force."""
    with ControlPlane(tmp_path_factory.mktemp("warned")) as plane:
        install(plane)
        for document in (document for kind in POLICIES for document in of_kind(rendered(), kind)):
            ran = kubectl(plane, "apply", "--server-side", "-f", "-", stdin=json.dumps(document))
            assert ran.returncode == 0, ran.stderr
        with closing(plane.api()) as api:
            kubernetes = Kubernetes(plane, api, "default")
            for wrong in (topic("canary", config={"no.such": "1"}), cluster("canary", config={"no.such": "1"})):
                until_outside(
                    lambda wrong=wrong: kubernetes.create(wrong, dry=True).warnings,  # type: ignore[misc]
                    SECONDS_MAX,
                )
            yield kubernetes


def warnings(kubernetes: Kubernetes, resource: Json) -> str:
    """What the API server says of a resource that it takes."""
    answer = kubernetes.create(resource, dry=True)
    assert answer.is_well, answer.message
    return "\n".join(answer.warnings)


def test_a_person_who_applies_an_unknown_setting_is_told_its_name_and_it_is_stored(warned: Kubernetes) -> None:
    text = yaml.safe_dump(topic("orders", config={"retention.mss": "1000", "cleanup.policy": "delete"}))
    ran = warned.kubectl("apply", "-f", "-", stdin=text)
    assert ran.returncode == 0
    assert "spec.config: not a setting of a topic: retention.mss" in ran.stderr
    assert "cleanup.policy" not in ran.stderr
    assert warned.get("Topic", "orders")["spec"]["config"]["retention.mss"] == "1000"


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (topic(config={"retention.ms": 1, "Retention.ms": 1}), "not a setting of a topic: Retention.ms"),
        (topic(replicationFactor=2, config={"min.insync.replicas": "3"}), "min.insync.replicas is 3"),
        (topic(replicationFactor=2, config={"min.insync.replicas": 3}), "at most 2 replicas"),
        (cluster(config={"num.io.treads": "8"}), "not a setting of a broker: num.io.treads"),
        (cluster(config={"retention.ms": "8"}), "not a setting of a broker: retention.ms"),
        (cluster(config={"min.insync.replicas": 4}), "at most 3 replicas"),
        (cluster(config={"min.insync.replicas": "3", "default.replication.factor": 2}), "at most 2 replicas"),
        (
            cluster(
                nodePools=[pool("a", replicas=1), pool("b", replicas=5, roles=["controller"])],
                config={"min.insync.replicas": 2},
            ),
            "at most 1 replicas",
        ),
    ],
)
def test_what_is_wrong_is_named(warned: Kubernetes, resource: Json, words: str) -> None:
    assert words in warnings(warned, resource)


def test_each_of_several_is_named(warned: Kubernetes) -> None:
    said = warnings(warned, topic(config={"log.retention.ms": "1", "x": "2"}))
    assert set(said.rpartition(": ")[2].strip('"').split(", ")) == {"log.retention.ms", "x"}


@pytest.mark.parametrize(
    "resource",
    [
        topic(),
        topic(config={}),
        topic(config={"min.insync.replicas": 3}),
        topic(replicationFactor=3, config={"min.insync.replicas": "3", "retention.ms": 1000}),
        topic(replicationFactor=3, config={"min.insync.replicas": "many"}),
        cluster(),
        cluster(config={"min.insync.replicas": 3, "default.replication.factor": "3"}),
        cluster(config={"listener.name.plaintext.max.connections": 5}),
    ],
)
def test_what_is_right_is_taken_without_a_word(warned: Kubernetes, resource: Json) -> None:
    assert warnings(warned, resource) == ""


@pytest.mark.parametrize(("make", "keys"), [(topic, TOPIC_KEYS), (cluster, BROKER_KEYS)], ids=["topic", "broker"])
def test_every_setting_that_the_broker_knows_is_known(
    warned: Kubernetes, make: Callable[..., Json], keys: dict[str, object]
) -> None:
    names = sorted(keys)
    for some in (names[:KEYS_MAX], names[KEYS_MAX:]):
        answer = warned.create(make(config=dict.fromkeys(some, "1")), dry=True)
        assert not [warning for warning in answer.warnings if "not a setting" in warning]


@pytest.mark.parametrize("make", [topic, cluster])
def test_the_largest_config_is_within_the_cost_that_is_allowed(warned: Kubernetes, make: Callable[..., Json]) -> None:
    config = {f"{'long.' * 20}name.{number}": "1" for number in range(KEYS_MAX)}
    assert "names that are not settings of a" in warnings(warned, make(config=config))


def test_the_policies_themselves_are_without_a_warning(warned: Kubernetes) -> None:
    """The API server checks the types of what they say of our kinds."""
    for document in of_kind(rendered(), "ValidatingAdmissionPolicy"):
        path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{document['metadata']['name']}"
        until_outside(lambda path=path: "typeChecking" in status(warned, path), SECONDS_MAX)  # type: ignore[misc]
        assert status(warned, path)["typeChecking"] == {}


def status(kubernetes: Kubernetes, path: str) -> Json:
    found: Json = kubernetes.api.call("GET", path).body.get("status", {})
    return found
