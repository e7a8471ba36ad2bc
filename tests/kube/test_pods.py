"""Nodes as pods on a real API server: what is made there, and what a real StatefulSet controller makes of it.

No kubelet runs here, so that the test says of a pod how it is; a real broker answers for nodes that are said to run.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes
from tests.kube.objects import cluster, pool, volumes
from tests.kube.test_operator import Operated
from tests.support.control_plane import Json
from tests.support.servers import Server, start_server

MERGE = "application/merge-patch+json"
IMAGE = "kavka/broker:1"
RUNS = {
    "phase": "Running",
    "podIP": "10.244.0.9",
    "containerStatuses": [
        {"name": "broker", "started": True, "ready": True, "image": IMAGE, "imageID": "", "restartCount": 0}
    ],
}
RBAC = "apis/rbac.authorization.k8s.io/v1"
CANNOT_PULL = {
    "phase": "Pending",
    "initContainerStatuses": [
        {
            "name": "format",
            "ready": False,
            "image": "kavka/broker:none",
            "imageID": "",
            "restartCount": 0,
            "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
        }
    ],
}


def of_pods(replicas: int = 1, size: str = "1Gi", **spec: object) -> Json:
    """A KafkaCluster that can run as pods."""
    nodes = pool("nodes", replicas=replicas, storage=volumes({"name": "data", "size": size}))
    return cluster("pods", nodePools=[nodes], image=IMAGE, **spec)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker that answers for all pods of this file."""
    running = start_server(tmp_path_factory.mktemp("broker"))
    yield running
    running.kill()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    scene.start()
    yield scene
    scene.stop()


def place(scene: Operated, kind: str, name: str = "") -> str:
    """The path of objects that nodes are made of."""
    prefixes = {"statefulsets": "apis/apps/v1", "networkpolicies": "apis/networking.k8s.io/v1"}
    prefixes |= {"poddisruptionbudgets": "apis/policy/v1", "cronjobs": "apis/batch/v1", "jobs": "apis/batch/v1"}
    prefix = {**prefixes, "roles": RBAC, "rolebindings": RBAC}.get(kind, "api/v1")
    return "/".join(word for word in (f"/{prefix}/namespaces/{scene.kubernetes.namespace}/{kind}", name) if word)


def names(scene: Operated, kind: str) -> list[str]:
    """The names of what there is of a kind."""
    items = scene.kubernetes.api.call("GET", place(scene, kind)).body["items"]
    return sorted(item["metadata"]["name"] for item in items)


def find(scene: Operated, kind: str, name: str) -> Json:
    """An object; empty where there is none."""
    answer = scene.kubernetes.api.call("GET", place(scene, kind, name))
    return answer.body if answer.is_well else {}


def say(scene: Operated, pod: str, status: Json) -> None:
    """Let a pod have a status."""
    answer = scene.kubernetes.api.call(
        "PATCH", f"{place(scene, 'pods', pod)}/status", {"status": status}, content=MERGE
    )
    assert answer.is_well, answer.message


def begun(scene: Operated, resource: Json, pods: int = 1) -> None:
    """Apply a cluster, and wait for its pods."""
    assert scene.kubernetes.apply(resource).is_well
    scene.until(lambda: len(names(scene, "pods")) == pods)


def allow_pods(scene: Operated, most: int) -> None:
    """Let the namespace have so many pods; the controller that would count them is not here."""
    name, hard = "few", {"pods": str(most)}
    if not find(scene, "resourcequotas", name):
        made = {"metadata": {"name": name}, "spec": {"hard": hard}}
        assert scene.kubernetes.api.call("POST", place(scene, "resourcequotas"), made).is_well
    path = place(scene, "resourcequotas", name)
    status = {"status": {"hard": hard, "used": {"pods": "0"}}}
    for part, body in (("", {"spec": {"hard": hard}}), ("/status", status)):
        assert scene.kubernetes.api.call("PATCH", f"{path}{part}", body, content=MERGE).is_well


def message(scene: Operated) -> str:
    """What the conditions of the cluster of pods say."""
    conditions = scene.status("KafkaCluster", "pods").get("conditions", [])
    return " ".join(condition["message"] for condition in conditions)


def test_a_pod_that_is_not_admitted_is_told_in_the_words_of_the_api_server(operated: Operated) -> None:
    allow_pods(operated, 0)
    assert operated.kubernetes.apply(of_pods()).is_well
    words = ("Kubernetes does not take its pods: ", "exceeded quota: few")
    operated.until(lambda: all(part in message(operated) for part in words))
    allow_pods(operated, 5)
    operated.until(lambda: names(operated, "pods") == ["pods-nodes-0-0"])
    operated.until(lambda: "has no pod" not in message(operated))


def test_a_cluster_becomes_pods_of_its_own_and_rests(operated: Operated) -> None:
    begun(operated, of_pods(3), pods=3)
    assert names(operated, "statefulsets") == [f"pods-nodes-{number}" for number in range(3)]
    assert names(operated, "persistentvolumeclaims") == [f"data-pods-nodes-{number}" for number in range(3)]
    assert names(operated, "services") == ["pods-bootstrap", "pods-nodes"]
    assert names(operated, "networkpolicies") == ["pods-nodes"]
    operated.until(lambda: operated.status("KafkaCluster", "pods").get("nodes"))
    operated.until(lambda: len(names(operated, "poddisruptionbudgets")) == 3)
    operated.until(lambda: sum("PodDisruptionBudget" in words for words in operated.writes()) == 3)
    before = operated.writes()
    assert sum("StatefulSet" in words for words in before) == 3
    operated.stop()
    operated.start()
    assert operated.kubernetes.apply(of_pods(3, rollout={"delaySeconds": 1})).is_well

    def observed() -> int:
        return int(operated.status("KafkaCluster", "pods").get("observedGeneration", 0))

    operated.until(lambda: observed() == operated.kubernetes.get("KafkaCluster", "pods")["metadata"]["generation"])
    assert set(operated.writes()[len(before) :]) <= {"KafkaCluster pods status"}
    assert [words for words in before if "Service" in words] == ["Service pods-nodes", "Service pods-bootstrap"]


def test_a_bad_image_is_told_in_the_words_of_the_machine_and_goes_with_a_better_one(operated: Operated) -> None:
    begun(operated, of_pods())
    say(operated, "pods-nodes-0-0", CANNOT_PULL)
    operated.until(lambda: "ErrImagePull: not found" in message(operated))
    former = find(operated, "pods", "pods-nodes-0-0")["metadata"]["uid"]
    assert operated.kubernetes.apply({**of_pods(), "spec": {**of_pods()["spec"], "image": "kavka/broker:2"}}).is_well
    operated.until(lambda: images(operated, "pods-nodes-0-0") == ["kavka/broker:2"])
    pod = find(operated, "pods", "pods-nodes-0-0")
    assert pod["metadata"]["uid"] != former
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-pods-nodes-0"


def images(scene: Operated, pod: str) -> list[str]:
    """The images of a pod's containers; of none where it is not there."""
    return [container["image"] for container in find(scene, "pods", pod).get("spec", {}).get("containers", [])]


def test_an_evicted_pod_comes_back_with_its_former_template_while_a_roll_is_held(operated: Operated) -> None:
    begun(operated, of_pods())
    say(operated, "pods-nodes-0-0", RUNS)
    former = find(operated, "pods", "pods-nodes-0-0")["metadata"]["uid"]
    assert operated.kubernetes.apply(of_pods(config={"num.io.threads": "4"}, rollout={"hold": True})).is_well
    operated.until(lambda: operated.condition("KafkaCluster", "pods", "RolloutPending")[0] == "True")
    answer = operated.kubernetes.api.call(
        "DELETE", place(operated, "pods", "pods-nodes-0-0"), {"gracePeriodSeconds": 0}
    )
    assert answer.is_well
    operated.until(lambda: find(operated, "pods", "pods-nodes-0-0").get("metadata", {}).get("uid", former) != former)
    settings = find(operated, "pods", "pods-nodes-0-0")["metadata"]["annotations"]["kavka.dev/settings"]
    assert "num.io.threads" not in settings


def test_a_deleted_cluster_leaves_its_volumes_and_is_found_on_them_again(operated: Operated) -> None:
    begun(operated, of_pods())
    claim = find(operated, "persistentvolumeclaims", "data-pods-nodes-0")
    kept = claim["metadata"]["annotations"]
    assert "ownerReferences" not in claim["metadata"]
    operated.kubernetes.shows("delete", "kafkaclusters.kavka.dev", "pods")
    operated.until(lambda: names(operated, "statefulsets") == [] and names(operated, "services") == [])
    for pod in names(operated, "pods"):
        operated.kubernetes.api.call("DELETE", place(operated, "pods", pod), {"gracePeriodSeconds": 0})
    until_nothing_is_left(operated)
    begun(operated, of_pods())
    assert find(operated, "persistentvolumeclaims", "data-pods-nodes-0")["metadata"]["annotations"] == kept
    (format_container,) = find(operated, "pods", "pods-nodes-0-0")["spec"]["initContainers"]
    assert f"--cluster-id={kept['kavka.dev/cluster-id']}" in format_container["args"]


def until_nothing_is_left(scene: Operated) -> None:
    """Wait until all has gone that goes with a deleted cluster `pods`. What is left of it would be taken for a
    stranger's, and looked at again only after a minute.
    """
    kinds = ("pods", "networkpolicies", "poddisruptionbudgets", "services", "secrets")
    scene.until(lambda: not any(owned(scene, kind) for kind in kinds))


def owned(scene: Operated, kind: str) -> list[str]:
    """What there is of a kind that goes with its owner."""
    return [name for name in names(scene, kind) if find(scene, kind, name).get("metadata", {}).get("ownerReferences")]


def test_what_is_not_ours_is_not_taken_over(operated: Operated) -> None:
    service = {"metadata": {"name": "pods-nodes"}, "spec": {"ports": [{"port": 80}]}}
    assert operated.kubernetes.api.call("POST", place(operated, "services"), service).is_well
    assert operated.kubernetes.apply(of_pods()).is_well
    operated.until(lambda: operated.condition("KafkaCluster", "pods") == ("False", "Unsupported"))
    assert find(operated, "services", "pods-nodes")["spec"]["ports"][0]["port"] == 80
    assert names(operated, "statefulsets") == []


def test_fields_of_pods_are_judged_by_the_api_server_before_anything_is_begun(operated: Operated) -> None:
    bad = of_pods()
    bad["spec"]["nodePools"][0]["pod"] = {"tolerations": [{"key": "only", "operator": "Never"}]}
    assert operated.kubernetes.apply(bad).is_well
    operated.until(lambda: "tolerations[0].operator: Unsupported value" in message(operated))
    assert names(operated, "statefulsets") == names(operated, "persistentvolumeclaims") == []
    bad["spec"]["nodePools"][0]["pod"] = {"affinity": {"nodeAffinities": {}}}
    assert operated.kubernetes.apply(bad).is_well
    operated.until(lambda: "nodeAffinities: field not declared" in message(operated))
    good = of_pods()
    good["spec"]["nodePools"][0]["pod"] = {
        "labels": {"team": "streams"},
        "tolerations": [{"key": "only", "operator": "Exists"}],
    }
    begun(operated, good)
    pod = find(operated, "pods", "pods-nodes-0-0")
    assert pod["metadata"]["labels"]["team"] == "streams"
    assert {"key": "only", "operator": "Exists"} in pod["spec"]["tolerations"]


def test_racks_follow_from_the_zones_of_machines(operated: Operated) -> None:
    zone = "example.com/zone"
    operated.stop()
    operated.start(KAVKA_SEE_MACHINES="true")
    machines = {f"machine-{value}": value for value in "abc"}
    for name, value in machines.items():
        made = {"metadata": {"name": name, "labels": {zone: value}}}
        assert operated.kubernetes.api.call("POST", "/api/v1/nodes", made).is_well
    resource = of_pods(3)
    resource["spec"]["nodePools"][0]["topologyKey"] = zone
    try:
        begun(operated, resource, pods=3)
        pods = [find(operated, "pods", f"pods-nodes-{number}-0") for number in range(3)]
    finally:
        for name in machines:
            operated.kubernetes.api.call("DELETE", f"/api/v1/nodes/{name}")
    assert [pod["spec"]["nodeSelector"] for pod in pods] == [{zone: value} for value in "abc"]
    settings = [pod["metadata"]["annotations"]["kavka.dev/settings"] for pod in pods]
    assert ["broker.rack=" + value in text for value, text in zip("abc", settings, strict=True)] == [True] * 3


def test_clients_outside_reach_each_broker_by_a_service(operated: Operated) -> None:
    outside = {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}}
    resource = of_pods(2, listeners=[outside, {"name": "INSIDE", "port": 9092}])
    begun(operated, resource, pods=2)
    ports = [find(operated, "services", f"pods-nodes-{n}-9094")["spec"]["ports"][0]["nodePort"] for n in range(2)]
    for number, port in enumerate(ports):
        (container,) = find(operated, "pods", f"pods-nodes-{number}-0")["spec"]["containers"]
        (override,) = [word for word in container["args"] if word.startswith("--override=")]
        assert f"OUTSIDE://$(KAVKA_HOST_IP):{port}," in override
        say(operated, f"pods-nodes-{number}-0", {**RUNS, "hostIP": "192.0.2.1", "hostIPs": [{"ip": "192.0.2.1"}]})
    begins = [{"name": "OUTSIDE", "bootstrapServers": ",".join(f"192.0.2.1:{port}" for port in ports)}]
    operated.until(lambda: operated.status("KafkaCluster", "pods").get("listeners") == begins)


def test_services_of_a_listener_stay_until_the_roll_has_taken_it_out(operated: Operated) -> None:
    outside = {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}}
    inside = {"name": "INSIDE", "port": 9092}
    begun(operated, of_pods(listeners=[outside, inside]))
    say(operated, "pods-nodes-0-0", {**RUNS, "hostIP": "192.0.2.1", "hostIPs": [{"ip": "192.0.2.1"}]})
    operated.until(lambda: operated.status("KafkaCluster", "pods").get("listeners"))
    both = ["pods-bootstrap-9094", "pods-nodes-0-9094"]
    before = operated.writes()
    assert operated.kubernetes.apply(of_pods(listeners=[inside], rollout={"hold": True})).is_well
    operated.until(lambda: "for spec.rollout.hold: false" in message(operated))
    assert {*both} < {*names(operated, "services")}, "clients still come by them"
    assert operated.kubernetes.apply(of_pods(listeners=[inside], rollout={"hold": False})).is_well
    operated.until(lambda: names(operated, "services") == ["pods-bootstrap", "pods-nodes"])
    expected = ["no Pod pods-nodes-0-0", *(f"no Service {name}" for name in both)]
    operated.until(lambda: sorted(words for words in operated.writes()[len(before) :] if "no " in words) == expected)


def test_a_node_waits_for_its_load_balancer_and_says_its_address(operated: Operated) -> None:
    outside = {"name": "OUTSIDE", "port": 9094, "service": {"type": "LoadBalancer"}}
    resource = of_pods(1, listeners=[outside, {"name": "INSIDE", "port": 9092}])
    assert operated.kubernetes.apply(resource).is_well
    operated.until(lambda: "Service pods-nodes-0-9094 has no address yet" in message(operated))
    assert names(operated, "statefulsets") == []
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.8"}]}}}
    path = f"{place(operated, 'services', 'pods-nodes-0-9094')}/status"
    assert operated.kubernetes.api.call("PATCH", path, status, content=MERGE).is_well
    operated.until(lambda: names(operated, "pods") == ["pods-nodes-0-0"])
    settings = find(operated, "pods", "pods-nodes-0-0")["metadata"]["annotations"]["kavka.dev/settings"]
    assert "OUTSIDE://192.0.2.8:9094" in settings


def test_a_pod_that_a_leaving_node_left_behind_is_seen_and_taken_down(operated: Operated) -> None:
    begun(operated, of_pods(3), pods=3)
    for number in range(3):
        say(operated, f"pods-nodes-{number}-0", RUNS)
    operated.until(lambda: operated.status("KafkaCluster", "pods").get("readyBrokers") == 3)
    operated.stop()
    kubernetes = operated.kubernetes
    orphan = {"propagationPolicy": "Orphan"}
    assert kubernetes.api.call("DELETE", place(operated, "statefulsets", "pods-nodes-2"), orphan).is_well
    operated.until(lambda: names(operated, "statefulsets") == ["pods-nodes-0", "pods-nodes-1"])
    assert "ownerReferences" not in find(operated, "pods", "pods-nodes-2-0")["metadata"]
    assert kubernetes.apply(of_pods(2, rollout={"hold": True})).is_well  # fewer nodes have other settings
    operated.start()
    operated.until(lambda: "no Pod pods-nodes-2-0" in operated.writes())
    assert "data-pods-nodes-2" in names(operated, "persistentvolumeclaims")


def test_an_id_that_was_taken_from_a_claim_is_told_until_a_broker_proves_it(operated: Operated) -> None:
    begun(operated, of_pods())
    claim, key = "data-pods-nodes-0", "kavka.dev/directory-id"
    former = find(operated, "persistentvolumeclaims", claim)["metadata"]["annotations"]
    wiped = {"metadata": {"annotations": {key: None}}}
    path = place(operated, "persistentvolumeclaims", claim)
    assert operated.kubernetes.api.call("PATCH", path, wiped, content=MERGE).is_well
    operated.until(lambda: f"pvc {claim} {key}={former[key]}" in message(operated))
    assert operated.condition("KafkaCluster", "pods") == ("False", "Unsupported")
    assert key not in find(operated, "persistentvolumeclaims", claim)["metadata"]["annotations"]
    say(operated, "pods-nodes-0-0", RUNS)
    operated.until(
        lambda: find(operated, "persistentvolumeclaims", claim)["metadata"]["annotations"].items() >= former.items()
    )
