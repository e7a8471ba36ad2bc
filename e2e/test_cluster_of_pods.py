"""A KafkaCluster as pods: applied to Ready, and a client that loses nothing whatever becomes of pods and volumes."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.cluster import kubectl
from tests.kube.cluster import CRDS
from tests.kube.objects import cluster, pool, topic, volumes
from tests.support.control_plane import Json
from tests.support.waiting import until_outside

HERE = Path(__file__).parent
NAMESPACE, OPERATORS = "cluster-of-pods", "operator-of-pods"
BROKER_IMAGE, OPERATOR_IMAGE = "kavka.local/broker:e2e", "kavka.local/operator:e2e"
BOOTSTRAP = f"main-bootstrap.{NAMESPACE}.svc:9092"
CLIENT = (HERE / "client.py").read_text()
SECONDS_MAX = 300
NODES = pool("nodes", replicas=3, racks=["a", "b", "c"], storage=volumes({"name": "data", "size": "1Gi"}))
POD = "main-nodes-1-0"


def ask(*arguments: str, namespace: str = NAMESPACE, stdin: str = "") -> str:
    """What kubectl says."""
    line = [*kubectl(), "--namespace", namespace, *arguments]
    ran = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False, timeout=2 * SECONDS_MAX)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def apply(resource: Json, namespace: str = NAMESPACE) -> None:
    ask("apply", "--filename", "-", stdin=json.dumps(resource), namespace=namespace)


def operator_documents() -> list[Json]:
    """The operator as in the test of its image, in a namespace of its own, with an image for brokers."""
    documents = list(yaml.safe_load_all((HERE / "operator.yaml").read_text().replace("operator-image", OPERATORS)))
    (pod,) = (document for document in documents if document["kind"] == "Pod")
    environment = pod["spec"]["containers"][0]["env"]
    (watched,) = (entry for entry in environment if entry["name"] == "KAVKA_WATCH_NAMESPACES")
    watched["value"] = NAMESPACE
    environment.append({"name": "KAVKA_BROKER_IMAGE", "value": BROKER_IMAGE})
    return documents


def client(name: str, *arguments: str) -> Json:
    """A pod that runs the client."""
    container = {"name": "client", "image": OPERATOR_IMAGE, "command": ["python", "-c", CLIENT, *arguments]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def scene() -> Iterator[None]:
    """An operator, and an empty namespace that it watches."""
    ask("apply", "--server-side", "--filename", str(CRDS))
    for name in (NAMESPACE, OPERATORS):
        ask("create", "namespace", name)
    for document in operator_documents():
        apply(document, OPERATORS)
    yield
    ask("delete", "namespace", NAMESPACE, OPERATORS, f"--timeout={SECONDS_MAX}s")
    ask("delete", "clusterrolebinding", OPERATORS)


def until_ready(kind: str = "kafkaclusters", name: str = "main") -> None:
    """Wait until the resource as it stands now is ready, and no roll is left."""

    def is_ready() -> bool:
        found = json.loads(ask("get", kind, name, "--output", "json"))
        status = found.get("status", {})
        conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
        is_new = status.get("observedGeneration") == found["metadata"]["generation"]
        return is_new and conditions.get("Ready") == "True" and "Reconciling" not in conditions

    until_outside(is_ready, SECONDS_MAX)


def uid(kind: str, name: str) -> str:
    return ask("get", kind, name, "--ignore-not-found", "--output", "jsonpath={.metadata.uid}")


def acknowledged() -> int:
    """How many records the client was told to be kept."""
    lines = ask("logs", "producer", "--tail", "1").split()
    return int(lines[-1]) if lines else 0


def until_more() -> None:
    """Wait until the client goes on."""
    before = acknowledged()
    until_outside(lambda: acknowledged() > before, SECONDS_MAX)


def replaced(kind: str, name: str, former: str) -> bool:
    return uid(kind, name) not in {"", former}


def check(name: str, count: int) -> None:
    """Every record is there once."""
    apply(client(name, "check", BOOTSTRAP, str(count)))
    ask("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", f"--timeout={SECONDS_MAX}s")
    assert ask("logs", name).strip().endswith("0 lost, 0 twice")


@pytest.mark.usefixtures("scene")
def test_a_client_loses_nothing_whatever_becomes_of_pods_and_volumes() -> None:
    wanted = cluster("main", nodePools=[NODES])
    apply(wanted)
    until_ready()
    apply(topic("flights", partitions=3, replicationFactor=3, config={"min.insync.replicas": "2"}))
    until_ready("topics.kavka.dev", "flights")
    apply(client("producer", "produce", BOOTSTRAP))
    ask("wait", "--for=condition=Ready", "pod/producer", f"--timeout={SECONDS_MAX}s")
    until_outside(lambda: acknowledged() > 0, SECONDS_MAX)

    former = uid("pod", POD)
    apply(cluster("main", nodePools=[NODES], config={"num.io.threads": "4"}))
    until_outside(lambda: replaced("pod", POD, former), SECONDS_MAX)
    until_ready()
    until_more()

    former = uid("pod", POD)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": POD, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}/eviction"
    until_outside(lambda: evicts(path, eviction), SECONDS_MAX)
    until_outside(lambda: replaced("pod", POD, former), SECONDS_MAX)
    until_ready()
    until_more()

    former = uid("pvc", "data-main-nodes-2")
    ask("delete", "pvc", "data-main-nodes-2", "--wait=false")
    ask("delete", "pod", "main-nodes-2-0", "--wait=false")
    until_outside(lambda: replaced("pvc", "data-main-nodes-2", former), SECONDS_MAX)
    until_ready()
    until_more()

    count = acknowledged()
    ask("delete", "pod", "producer", "--now")
    check("first-check", count)
    ask("delete", "kafkaclusters", "main")
    until_outside(
        lambda: not ask("get", "pods", "--selector", "kavka.dev/cluster=main", "--output", "name"), SECONDS_MAX
    )
    apply(wanted)
    until_ready()
    check("second-check", count)


def evicts(path: str, eviction: Json) -> bool:
    """Ask for an eviction; whether a budget lets it be."""
    line = [*kubectl(), "create", "--raw", path, "--filename", "-"]
    ran = subprocess.run(line, input=json.dumps(eviction), capture_output=True, text=True, check=False)
    return ran.returncode == 0
