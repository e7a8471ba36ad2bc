"""The operator as its ServiceAccount, with the chart's roles alone: what it may ask is what it asks, verb by verb.

The API server writes down each request of a ServiceAccount, and whether a role allowed it. So a right that is taken
out is missed here, and one that nobody uses stands out.
"""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_operator.api import API_VERSION
from kavka_operator.platform.kubernetes.live.api import APPLY, MANAGER
from tests.kube import forks
from tests.kube.cluster import Kubernetes, install
from tests.kube.helm import CHART, of_kind, rendered
from tests.kube.objects import cluster, pool, quota, resource, topic, user
from tests.kube.test_operator import Operated
from tests.kube.test_pods import (
    CANNOT_PULL,
    RUNS,
    allow_pods,
    find,
    message,
    names,
    of_pods,
    place,
    say,
    until_nothing_is_left,
)
from tests.kube.test_resizing import begin, is_settled, processor, sized
from tests.support.control_plane import Api, ControlPlane, Json, kubectl
from tests.support.drawn import in_turn
from tests.support.servers import Server, start_server
from tests.support.waiting import until_outside

HOME, PLACE = "kavka", "shop"
END_SECONDS_MAX = 60.0
CREATED = 201
RIGHTS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
GONE = {"": 409, "status": 404}
"""The answers to a write to a part of a resource that is gone."""
Right = tuple[str, str, str]
"""Group, resource and verb."""


@dataclass(slots=True)
class Confined(Operated):
    """The operator as the ServiceAccount of the chart."""

    kubeconfig: Path = Path()

    def start(self, last: int | None = None, **others: str) -> None:
        assert last is None, "nothing dies here"
        settings = {"KUBECONFIG": str(self.kubeconfig), "POD_NAMESPACE": HOME, "POD_NAME": "operator", **others}
        settings["KAVKA_TEST_NODE"] = "0"
        self.running = forks.start([self.broker.bootstrap], {**os.environ, **settings}, self.log)

    def end(self) -> None:
        """Let the operator end as a pod does, so that it gives back its lease."""
        assert self.running is not None
        self.running.terminate()
        assert self.running.wait(END_SECONDS_MAX) == 0, self.log.read_text()[-2000:]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of its own, whose audit log has nothing of other tests."""
    with ControlPlane(tmp_path) as plane:
        install(plane)
        yield plane


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = start_server(tmp_path_factory.mktemp("broker"), {"node.id": "0"})
    yield running
    running.kill()


@pytest.fixture
def confined(plane: ControlPlane, broker: Server, tmp_path: Path) -> Iterator[Confined]:
    """Two namespaces, and no rights yet."""
    for name in (HOME, PLACE):
        assert kubectl(plane, "create", "namespace", name).returncode == 0
    with closing(plane.api()) as api:
        scene = Confined(Kubernetes(plane, api, PLACE), broker, tmp_path / "operator.log")
        yield scene
        scene.stop()


def grant(scene: Confined, values: Json) -> None:
    """Give the chart's rights to its ServiceAccount, and take a token of it."""
    plane = scene.kubernetes.plane
    for document in (document for kind in RIGHTS for document in of_kind(rendered(values, namespace=HOME), kind)):
        place = document["metadata"].get("namespace", "default")
        ran = kubectl(plane, "apply", "-f", "-", stdin=json.dumps(document), namespace=place)
        assert ran.returncode == 0, ran.stderr
    ran = kubectl(plane, "create", "token", "kavka", namespace=HOME)
    assert ran.returncode == 0, ran.stderr
    scene.kubeconfig = plane.directory / "operator.kubeconfig"
    plane.write_kubeconfig(scene.kubeconfig, ran.stdout.strip())


def requests(scene: Confined) -> list[Json]:
    """What the operator has asked of resources. The API server may be in the middle of the last line."""
    return [event for event in whole_lines(scene.kubernetes.plane.audit.read_text()) if "objectRef" in event]


def whole_lines(log: str) -> list[Json]:
    """The events of an audit log up to its last line break."""
    return [json.loads(line) for line in log[: log.rfind("\n") + 1].splitlines()]


def right_of(event: Json) -> Right:
    asked = event["objectRef"]
    resource = "/".join(word for word in (asked["resource"], asked.get("subresource", "")) if word)
    return asked.get("apiGroup", ""), resource, event["verb"]


def decided(events: list[Json], decision: str) -> set[Right]:
    """The rights that were asked for; to apply what is not there takes that to create it too, which has no event."""
    found = [event for event in events if event["annotations"]["authorization.k8s.io/decision"] == decision]
    made = [right_of(event) for event in found if event.get("responseStatus", {}).get("code") == CREATED]
    return {right_of(event) for event in found} | {
        (group, resource, "create") for group, resource, verb in made if verb == "patch"
    }


OF_OWNERS: Right = ("kavka.dev", "kafkaclusters/finalizers", "update")
"""Asked by the API server itself, which writes that down nowhere, before it takes an object that holds its owner up."""

OF_GRANTS: set[Right] = {("", "pods", "deletecollection")}
"""Held so that the role of Spark's driver may be written, which the API server judges by it, and asked by nobody."""


CLIENTS = {"name": "CLIENTS", "port": 9092, "protocol": "SSL"}


def granted(*, is_everywhere: bool) -> set[Right]:
    """Every right that the chart gives the operator; which machines are cordoned nobody may ask in one namespace."""
    rules = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    every = (*rules["watched"], *rules["spark"], *(rules["machines"] if is_everywhere else ()), *rules["own"])
    every = (*every, *rules["users"], *rules["certificates"])
    return set().union(*map(rights_of, every))


def rights_of(rule: Json) -> set[Right]:
    return set(product(rule["apiGroups"], rule["resources"], rule["verbs"]))


def play(scene: Confined, namespaces: str) -> None:
    """Let the operator do all that it can do: make, change, correct, refuse, hand back."""
    create = scene.kubernetes.create
    assert create(cluster("main", nodePools=[pool("nodes", replicas=1)])).is_well
    scene.start(KAVKA_WATCH_NAMESPACES=namespaces)
    name = scene.kubernetes.plane.directory.name.replace("_", "-")
    assert create(topic("orders", topicName=f"{name}-orders", partitions=2, deletionPolicy="Delete")).is_well
    assert create(quota("etl", entity={"clientId": {"name": name}})).is_well
    assert create(user(name, authentication={"rotate": "1"})).is_well
    scene.until_ready(("KafkaCluster", "main"), ("Topic", "orders"), ("ClientQuota", "etl"), ("KafkaUser", name))
    assert scene.kubernetes.apply(user(name, authentication={"rotate": "2"})).is_well
    scene.until(lambda: scene.status("KafkaUser", name)["credential"].get("rotate") == "2")
    made = (("Topic", "topics", "orders"), ("ClientQuota", "clientquotas", "etl"), ("KafkaUser", "kafkausers", name))
    for kind, plural, own in made:
        scene.kubernetes.shows("delete", f"{plural}.kavka.dev", own, "--wait=false")
        scene.until(lambda kind=kind, own=own: scene.is_gone(kind, own))  # type: ignore[misc]
    play_pods(scene)
    play_resize(scene)
    scene.end()


def secured(replicas: int, **spec: Any) -> Json:
    """A KafkaCluster whose nodes have certificates."""
    return of_pods(replicas, listeners=spec.pop("listeners", [CLIENTS]), **spec)


def play_pods(scene: Confined) -> None:
    """Let the operator make nodes with certificates, expose them and no more, change an image, take nodes away."""
    allow_pods(scene, 0)
    assert scene.kubernetes.apply(secured(5)).is_well
    scene.until(lambda: "Kubernetes does not take its pods" in message(scene))
    allow_pods(scene, 3)  # enough for a pod that is only tried, and too few for all
    scene.until(lambda: "FailedCreate" in message(scene))
    allow_pods(scene, 20)
    scene.until(lambda: len(names(scene, "pods")) == 5)
    first = templates(scene)
    outside = {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}}
    held = secured(5, listeners=[CLIENTS, outside], rollout={"hold": True})  # else all pods would be rolled
    assert scene.kubernetes.apply(held).is_well
    scene.until(lambda: find(scene, "services", "pods-nodes-4-9094"))
    assert scene.kubernetes.apply(secured(5)).is_well
    scene.until(lambda: not find(scene, "services", "pods-nodes-4-9094"))
    assert templates(scene) == first
    for number in range(5):
        say(scene, f"pods-nodes-{number}-0", RUNS)
    scene.until(lambda: scene.condition("KafkaCluster", "pods")[1] == "Registering")
    assert scene.kubernetes.apply(secured(4)).is_well
    scene.until(lambda: not find(scene, "statefulsets", "pods-nodes-4"))
    play_analytics(scene)
    say(scene, "pods-nodes-1-0", CANNOT_PULL)  # node 0 is the broker that answers
    former = find(scene, "pods", "pods-nodes-1-0")["metadata"]["uid"]
    better = secured(4)
    better["spec"]["image"] = "kavka/broker:2"
    assert scene.kubernetes.apply(better).is_well
    scene.until(lambda: find(scene, "pods", "pods-nodes-1-0").get("metadata", {}).get("uid", former) != former)


def templates(scene: Confined) -> list[Json]:
    """The templates of the pods of five nodes."""
    return [find(scene, "statefulsets", f"pods-nodes-{number}")["spec"]["template"] for number in range(5)]


def play_analytics(scene: Confined) -> None:
    """Let the operator keep a key, make all that runs of Spark need, see their jobs, and take the runs out again."""
    storage = {"volume": {"size": "1Gi"}}
    analytics = {"schedule": "@hourly", "engine": "Spark", "image": "kavka/audit:1", "storage": storage}
    plain = of_pods(1, audit={"analytics": analytics})
    plain["metadata"]["name"] = "plain"
    assert scene.kubernetes.apply(plain).is_well
    scene.until(lambda: find(scene, "pods", "plain-nodes-0-0"))
    say(scene, "plain-nodes-0-0", RUNS)
    scene.until(lambda: find(scene, "networkpolicies", "plain-audit"))
    scene.until(lambda: ("batch", "jobs", "list") in decided(requests(scene), "allow"))
    assert find(scene, "secrets", "plain-audit-key")
    plain["spec"]["audit"] = {}
    assert scene.kubernetes.apply(plain).is_well
    scene.until(lambda: not find(scene, "cronjobs", "plain-audit"))
    scene.kubernetes.shows("delete", "kafkaclusters.kavka.dev", "plain")


def play_resize(scene: Confined) -> None:
    """Let the operator give a broker that runs other resources, in a cluster that was deleted and is applied again."""
    scene.kubernetes.shows("delete", "kafkaclusters.kavka.dev", "pods")
    scene.until(lambda: not names(scene, "statefulsets"))
    for pod in names(scene, "pods"):
        scene.kubernetes.api.call("DELETE", place(scene, "pods", pod), {"gracePeriodSeconds": 0})
    until_nothing_is_left(scene)
    begin(scene, sized("500m"))
    assert scene.kubernetes.apply(sized("1")).is_well
    scene.until(lambda: processor(scene) == "1" and is_settled(scene))


@pytest.mark.parametrize(
    "namespaces", in_turn(["", PLACE], 2, {"": "everywhere", PLACE: "in one namespace"}.__getitem__)
)
def test_the_operator_may_do_what_it_does_and_nothing_besides(confined: Confined, namespaces: str) -> None:
    kept = {"userSecrets": [PLACE], "securedNamespaces": [PLACE]}
    grant(confined, {"watchNamespaces": namespaces.split(), **kept})
    play(confined, namespaces)
    events = requests(confined)
    assert decided(events, "forbid") == set()
    assert decided(events, "allow") | {OF_OWNERS} | OF_GRANTS == granted(is_everywhere=not namespaces)
    told = [line for line in confined.log.read_text().splitlines() if "exceeded quota" not in line]
    assert not [line for line in told if "forbidden" in line.lower()]


def test_a_line_that_is_half_written_is_not_read_yet() -> None:
    assert whole_lines('{"verb": "get"}\n{"verb": "li') == [{"verb": "get"}]
    assert whole_lines('{"ve') == []


def test_a_right_that_is_taken_away_is_missed(confined: Confined) -> None:
    """What the test above would show: the operator says which right it lacks."""
    grant(confined, {})
    lacking = rendered(namespace=HOME)
    (role,) = [each for each in of_kind(lacking, "ClusterRole") if each["metadata"]["name"] == f"{HOME}-kavka"]
    role["rules"] = [rule for rule in role["rules"] if "topics/status" not in rule["resources"]]
    assert kubectl(confined.kubernetes.plane, "apply", "-f", "-", stdin=json.dumps(role)).returncode == 0
    assert confined.kubernetes.create(cluster("main", nodePools=[pool("nodes", replicas=1)])).is_well
    confined.start()
    missed = ("kavka.dev", "kafkaclusters/status", "patch")
    confined.until(lambda: missed in decided(requests(confined), "forbid"))
    confined.until(lambda: "forbidden" in confined.log.read_text())


def test_a_role_is_written_only_with_the_rights_that_it_gives(confined: Confined) -> None:
    """What the analytics lack is told in their status, and holds up nothing else."""
    grant(confined, {})
    (role,) = [
        each for each in of_kind(rendered(namespace=HOME), "ClusterRole") if each["metadata"]["name"] == f"{HOME}-kavka"
    ]
    role["rules"] = [rule for rule in role["rules"] if rule["verbs"] != ["deletecollection"]]
    assert kubectl(confined.kubernetes.plane, "apply", "-f", "-", stdin=json.dumps(role)).returncode == 0
    storage = {"volume": {"size": "1Gi"}}
    analytics = {"schedule": "@hourly", "engine": "Spark", "image": "kavka/audit:1", "storage": storage}
    assert confined.kubernetes.apply(of_pods(1, audit={"analytics": analytics})).is_well
    confined.start()
    confined.until(lambda: find(confined, "pods", "pods-nodes-0-0"))
    say(confined, "pods-nodes-0-0", RUNS)

    def told() -> Json:
        found: Json = confined.status("KafkaCluster", "pods").get("analytics", {})
        return found

    confined.until(lambda: told().get("state") == "Refused")
    assert "attempting to grant RBAC permissions not currently held" in told()["message"]


def test_a_secret_is_read_once_its_name_is_granted_and_no_other_is(confined: Confined) -> None:
    """The condition names the field and the chart's value until then; no KafkaCluster widens what may be read."""
    granted_name, other_name = "payments-user", "robot-token"
    for name in (granted_name, other_name):
        confined.kubernetes.shows("create", "secret", "generic", name, "--from-literal=username=etl")
    grant(confined, {})
    for name in (granted_name, other_name):
        sasl = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": name}}
        spec = {"bootstrapServers": confined.broker.bootstrap, "sasl": sasl}
        assert confined.kubernetes.create(resource("KafkaCluster", name, {"external": spec})).is_well
    confined.start()

    def words(name: str) -> str:
        conditions = confined.status("KafkaCluster", name).get("conditions", [])
        return next((found["message"] for found in conditions if found["reason"] == "SecretMissing"), "")

    for name in (granted_name, other_name):
        confined.until(lambda name=name: f"externalSecrets: {{{PLACE}: [{name}]}}" in words(name))  # type: ignore[misc]
        assert words(name).startswith(f'spec.external.sasl.secretRef: the operator may not read the Secret "{name}"')
    grant(confined, {"externalSecrets": {PLACE: [granted_name]}})
    confined.until(lambda: f'the Secret "{granted_name}" has no password' in words(granted_name))
    asked = [event for event in requests(confined) if event["objectRef"]["resource"] == "secrets"]
    read = [event["objectRef"] for event in asked if event["annotations"]["authorization.k8s.io/decision"] == "allow"]
    assert {(found["namespace"], found["name"]) for found in read} == {(PLACE, granted_name)}
    assert {right_of(event) for event in asked} == {("", "secrets", "get")}
    assert "may not read" in words(other_name)


def allows(api: Api, right: Right, name: str) -> bool:
    """Whether the API server lets the operator do this, in the namespace that the right is for."""
    group, resource, verb = right
    kind, _, part = resource.partition("/")
    place = "" if kind == "nodes" else HOME if kind == "leases" else PLACE
    asked = {"group": group, "resource": kind, "subresource": part, "verb": verb, "name": name, "namespace": place}
    body = {"spec": {"user": f"system:serviceaccount:{HOME}:kavka", "resourceAttributes": asked}}
    answer = api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    assert answer.is_well, answer.message
    return bool(answer.body["status"]["allowed"])


def test_each_right_stands_on_one_rule_so_that_no_rule_can_be_taken_out(plane: ControlPlane, broker: Server) -> None:
    """The API server refuses a right without its rule; that the operator asks for each of them is shown above."""
    for name in (HOME, PLACE):
        assert kubectl(plane, "create", "namespace", name).returncode == 0
    scene = Confined(Kubernetes(plane, plane.api(), PLACE), broker, plane.directory / "none.log")
    tried = rights_tried(scene, {"userSecrets": [PLACE]}, {"kavka", f"{HOME}-kavka", f"{HOME}-kavka-user-secrets"})
    tried |= rights_tried(scene, {"securedNamespaces": [PLACE]}, {f"{HOME}-kavka-certificates"})
    assert tried == granted(is_everywhere=True)
    scene.kubernetes.api.close()


def rights_tried(scene: Confined, values: Json, names: set[str]) -> set[Right]:
    """The rights of these roles, each of which was missed without its rule; the roles hold nothing at the end."""
    grant(scene, values)
    roles = [role for kind in ("ClusterRole", "Role") for role in of_kind(rendered(values, namespace=HOME), kind)]
    roles = [role for role in roles if role["metadata"]["name"] in names]
    tried: set[Right] = set()
    for role in roles:
        for number, rule in enumerate(role["rules"]):
            put_rules(scene, role, role["rules"])
            until_outside(partial(all_are, scene.kubernetes.api, rule, allowed=True))
            put_rules(scene, role, [*role["rules"][:number], *role["rules"][number + 1 :]])
            until_outside(partial(all_are, scene.kubernetes.api, rule, allowed=False))
            tried |= rights_of(rule)
        put_rules(scene, role, [])
    return tried


def all_are(api: Api, rule: Json, *, allowed: bool) -> bool:
    """Whether the operator may do all that a rule says, or nothing of it."""
    (name,) = rule.get("resourceNames", [""])
    return all(allows(api, right, name) is allowed for right in rights_of(rule))


def put_rules(scene: Confined, role: Json, rules: list[Json]) -> None:
    """Let a role of the chart hold these rules."""
    metadata = role["metadata"]
    place = f"/namespaces/{metadata['namespace']}/roles" if role["kind"] == "Role" else "/clusterroles"
    path = f"/apis/rbac.authorization.k8s.io/v1{place}/{metadata['name']}"
    assert scene.kubernetes.api.call("PUT", path, {**role, "rules": rules}).is_well


@pytest.mark.parametrize("part", in_turn([*GONE], 2))
def test_a_write_to_what_is_gone_asks_no_right_to_create(confined: Confined, part: str) -> None:
    """The operator takes 404 and 409 for "gone"; 403 would be a fault of its rights."""
    answer = GONE[part]
    grant(confined, {})
    token = yaml.safe_load(confined.kubeconfig.read_text())["users"][0]["user"]["token"]
    metadata = {"name": "gone", "uid": "9b1c2f6e-0000-0000-0000-000000000000"}
    body = {"apiVersion": API_VERSION, "kind": "Topic", "metadata": metadata}
    path, query = confined.kubernetes.path("Topic", "gone", part), {"fieldManager": MANAGER, "force": "true"}
    with closing(confined.kubernetes.plane.api(token)) as api:
        assert api.call("PATCH", path, body, content=APPLY, query=query).status == answer
