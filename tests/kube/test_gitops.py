"""GitOps on a real API server: what a tool has applied does not differ, nobody fights over a field, health is told.

Argo CD and Flux are not run here. What they do is: server-side applies by their field managers beside the running
operator; Argo CD's health script in Lua 5.1, and kstatus, which Flux asks, of the same statuses.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_operator.api.kinds import KINDS
from kavka_operator.platform.kubernetes.live.api import MANAGER
from tests.kube.cluster import Kubernetes
from tests.kube.objects import cluster, pool, quota, topic
from tests.kube.test_operator import Operated
from tests.support.control_plane import Json
from tests.support.drawn import in_turn
from tests.support.programs import lua
from tests.support.servers import Server, start_server

EXAMPLES = Path(__file__).parents[2] / "examples" / "gitops"
OVERLAYS = ("staging", "production")
HEALTH = yaml.safe_load((EXAMPLES / "argocd" / "health.yaml").read_text())["data"]
ALIKE = {"Current": "Healthy", "InProgress": "Progressing", "Failed": "Degraded"}
TOOLS = {
    "kubectl": ("--server-side",),
    "Argo CD": ("--server-side", "--field-manager=argocd-controller", "--force-conflicts"),
    "Flux": ("--server-side", "--field-manager=kustomize-controller", "--force-conflicts"),
    "kubectl of old": ("--server-side=false",),
}


def condition(kind: str, status: str, reason: str = "Reason", message: str = "words") -> Json:
    moment = "2026-11-21T12:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moment}


STATUSES: dict[str, tuple[Json, str]] = {
    "nothing": ({}, "InProgress"),
    "not seen": ({"conditions": [condition("Ready", "Unknown", "NotSeen")]}, "InProgress"),
    "ready": ({"observedGeneration": 1, "conditions": [condition("Ready", "True")]}, "Current"),
    "ready before a change": ({"observedGeneration": 0, "conditions": [condition("Ready", "True")]}, "InProgress"),
    "creating": ({"observedGeneration": 1, "conditions": [condition("Ready", "False", "Creating")]}, "InProgress"),
    "unknown": ({"observedGeneration": 1, "conditions": [condition("Ready", "Unknown")]}, "InProgress"),
    "changing": (
        {"observedGeneration": 1, "conditions": [condition("Ready", "False"), condition("Reconciling", "True")]},
        "InProgress",
    ),
    "stalled": (
        {"observedGeneration": 1, "conditions": [condition("Ready", "False"), condition("Stalled", "True", "Refused")]},
        "Failed",
    ),
    "a roll waits": (
        {
            "observedGeneration": 1,
            "conditions": [condition("Ready", "True"), condition("RolloutPending", "True", "RolloutWaits", "approve")],
        },
        "Current",
    ),
}


def literal(value: Any) -> str:
    """A value of JSON as Lua writes it."""
    match value:
        case dict():
            return "{" + ", ".join(f"[{literal(key)}] = {literal(part)}" for key, part in value.items()) + "}"
        case list():
            return "{" + ", ".join(map(literal, value)) + "}"
        case None:
            return "nil"
        case bool() | int() | float():
            return json.dumps(value)
    return '"' + "".join(f"\\{byte:03d}" for byte in str(value).encode()) + '"'


def health(kind: str, resource: Json) -> tuple[str, str]:
    """Argo CD's verdict of a resource: status and message."""
    script = HEALTH[f"resource.customizations.health.kavka.dev_{kind}"]
    judge = f"obj = {literal(resource)}\nlocal health = (function()\n{script}\nend)()\n"
    status, _, message = lua(f'{judge}io.write(health.status, "\\n", health.message)').partition("\n")
    return status, message


@pytest.mark.lua
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STATUSES)
def test_argo_cd_and_flux_judge_every_state_alike(kstatus: Callable[[Json], str], kind: str, name: str) -> None:
    status, verdict = STATUSES[name]
    resource = {
        "apiVersion": "kavka.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "default", "generation": 1},
        "spec": {},
        **({"status": status} if status else {}),
    }
    if status:  # the definition gives each resource a status by default, so kstatus never meets one without
        assert kstatus(resource) == verdict
    assert health(kind, resource)[0] == ALIKE[verdict]


@pytest.mark.lua
def test_the_health_of_argo_cd_says_why() -> None:
    stalled, waits = (
        {"metadata": {"generation": 1}, "status": STATUSES[name][0]} for name in ("stalled", "a roll waits")
    )
    assert health("Topic", stalled) == ("Degraded", "Refused: words")
    assert health("KafkaCluster", waits) == ("Healthy", "RolloutWaits: approve")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_api_server_takes_what_kustomize_builds(kubernetes: Kubernetes, overlay: str) -> None:
    documents = built(kubernetes, overlay)
    users_need_a_login = {"KafkaUser"}  # which the example's cluster has not
    assert sorted(document["kind"] for document in documents) == sorted({*KINDS} - users_need_a_login)
    (name,) = [document["metadata"]["name"] for document in documents if document["kind"] == "KafkaCluster"]
    for document in documents:
        if "clusterRef" in document["spec"]:
            assert document["spec"]["clusterRef"]["name"] == name
        del document["metadata"]["namespace"]
        answer = kubernetes.create(document, dry=True)
        assert answer.is_well, answer.message


def built(kubernetes: Kubernetes, overlay: str) -> list[Json]:
    """What kustomize makes of an overlay."""
    text = kubernetes.shows("kustomize", str(EXAMPLES / "kustomize" / overlay))
    return list(yaml.safe_load_all(text))


def test_flux_waits_for_what_the_overlay_makes(kubernetes: Kubernetes) -> None:
    documents = yaml.safe_load_all((EXAMPLES / "flux" / "kustomization.yaml").read_text())
    (waits,) = [document for document in documents if document["kind"] == "Kustomization"]
    place = waits["spec"]["targetNamespace"]
    made = {(document["kind"], document["metadata"]["name"], place) for document in built(kubernetes, "production")}
    assert {(check["kind"], check["name"], check["namespace"]) for check in waits["spec"]["healthChecks"]} == made
    assert Path(EXAMPLES.parents[1], waits["spec"]["path"]).is_dir()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = start_server(tmp_path_factory.mktemp("broker"))
    yield running
    running.kill()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    """A namespace that nothing was applied to yet."""
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    yield scene
    scene.stop()


def wanted(scene: Operated) -> str:
    """What a repository holds: one resource of each kind."""
    own = scene.kubernetes.namespace
    documents = [
        cluster("main", nodePools=[pool("nodes", replicas=1)]),
        topic("orders", topicName=f"{own}-orders", partitions=2, deletionPolicy="Delete"),
        quota("etl", entity={"clientId": {"name": own}}),
    ]
    return "\n---\n".join(map(json.dumps, documents))


EVERY = (("KafkaCluster", "main"), ("Topic", "orders"), ("ClientQuota", "etl"))


def stored(scene: Operated) -> list[Json]:
    return [scene.kubernetes.get(*key) for key in EVERY]


def versions(scene: Operated) -> list[str]:
    return [resource["metadata"]["resourceVersion"] for resource in stored(scene)]


@pytest.mark.parametrize("tool", in_turn([*TOOLS], 2))
def test_nobody_fights_over_a_field(operated: Operated, tool: str) -> None:
    """Applied, made, applied again: no difference, no conflict, no write, and what others have added stays."""
    text, words = wanted(operated), TOOLS[tool]
    operated.kubernetes.shows("apply", *words, "-f", "-", stdin=text)
    operated.start()
    operated.until_ready(*EVERY)
    note = ("annotate", "kafkaclusters.kavka.dev", "main", "kavka.dev/approve-rollout=0123456789ab")
    operated.kubernetes.shows(*note)
    settle(operated)
    writes = operated.at_rest()
    before = versions(operated)
    unforced = tuple(word for word in words if word != "--force-conflicts")
    assert operated.kubernetes.shows("diff", *unforced, "-f", "-", stdin=text) == ""
    operated.kubernetes.shows("apply", *unforced, "-f", "-", stdin=text)
    assert versions(operated) == before
    assert operated.writes() == writes
    (main, orders, _) = stored(operated)
    assert main["metadata"]["annotations"]["kavka.dev/approve-rollout"] == "0123456789ab"
    assert orders["metadata"]["finalizers"] == ["kavka.dev/finalizer"]


def settle(scene: Operated) -> None:
    """Wait until the operator has nothing more to say: it makes two quotas, and the looks before them are over."""
    for name in ("first", "second"):
        scene.kubernetes.apply(quota(name, entity={"clientId": {"name": f"{scene.kubernetes.namespace}-{name}"}}))
        scene.until_ready(("ClientQuota", name))


def test_the_operator_owns_statuses_and_its_finalizer_and_nothing_else(operated: Operated) -> None:
    operated.kubernetes.shows("apply", "--server-side", "-f", "-", stdin=wanted(operated))
    operated.start()
    operated.until_ready(*EVERY)
    for resource in stored(operated):
        own = [entry for entry in resource["metadata"]["managedFields"] if entry["manager"] == MANAGER]
        assert own
        for entry in own:
            parts = set(entry["fieldsV1"])
            assert parts <= ({"f:status"} if entry.get("subresource") == "status" else {"f:metadata"})
            assert set(entry["fieldsV1"].get("f:metadata", {})) <= {"f:finalizers"}
