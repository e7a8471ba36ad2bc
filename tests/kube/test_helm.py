"""A release of the chart in a real API server: installed, upgraded, taken out, and what stays."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kavka_operator.api import API_VERSION
from kavka_operator.api.kinds import KINDS
from tests.kube.cluster import wait_for_kinds
from tests.kube.helm import CHART, helm
from tests.kube.objects import cluster, quota, topic
from tests.support.control_plane import ControlPlane, Json, kubectl
from tests.support.waiting import until_outside

SECONDS_MAX = 60.0
DEFINITIONS = [f"{kind.plural}.kavka.dev" for kind in KINDS.values()]
OURS = [cluster("main"), topic("orders", deletionPolicy="Delete"), quota("etl")]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that has heard nothing of Kavka."""
    with ControlPlane(tmp_path) as plane:
        yield plane


def shows(plane: ControlPlane, *arguments: str, stdin: str = "") -> str:
    ran = kubectl(plane, *arguments, stdin=stdin)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def does(plane: ControlPlane, *arguments: str, values: Json | None = None) -> str:
    """What helm prints; an AssertionError where it fails."""
    ran = helm(*arguments, "--namespace", "ops", values=values, plane=plane)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def install(plane: ControlPlane, chart: Path = CHART, values: Json | None = None) -> str:
    return does(plane, "upgrade", "--install", "--create-namespace", "kavka", str(chart), values=values or {})


def store(plane: ControlPlane) -> None:
    """Store one resource of each kind, and hold the Topic as the operator does."""
    wait_for_kinds(plane, API_VERSION, {kind.plural for kind in KINDS.values()})
    shows(plane, "create", "namespace", "shop")
    text = "\n---\n".join(json.dumps(resource) for resource in OURS)
    shows(plane, "apply", "--server-side", "--namespace=shop", "-f", "-", stdin=text)
    held = '{"metadata": {"finalizers": ["kavka.dev/finalizer"]}}'
    shows(plane, "patch", "--namespace=shop", "topics.kavka.dev", "orders", "--type=merge", "--patch", held)


def stored(plane: ControlPlane) -> list[str]:
    return shows(plane, "get", "kavka", "--all-namespaces", "--output", "name").split()


def test_resources_outlive_their_operator_and_the_next_finds_them(plane: ControlPlane) -> None:
    assert "every namespace" in install(plane)
    store(plane)
    before = stored(plane)
    assert len(before) == len(OURS)
    assert "kept" in does(plane, "uninstall", "kavka")
    assert stored(plane) == before
    shows(plane, "wait", "--for=condition=Established", *(f"crd/{name}" for name in DEFINITIONS), "--timeout=60s")
    install(plane)
    assert stored(plane) == before
    does(plane, "uninstall", "kavka")
    shows(plane, "delete", "namespace", "ops", "--timeout=120s")


def test_an_upgrade_brings_the_fields_of_its_definitions(plane: ControlPlane, tmp_path: Path) -> None:
    install(plane)
    store(plane)
    later = tmp_path / "later"
    shutil.copytree(CHART, later)
    definition = later / "templates" / "crds" / "topics.yaml"
    purpose = "              deletionPolicy:\n"
    text = definition.read_text()
    assert text.count(purpose) == 1
    field = "              retention:\n                type: string\n                description: A field of later.\n"
    definition.write_text(text.replace(purpose, field + purpose))

    def explained() -> str:
        return kubectl(plane, "explain", "topics.kavka.dev.spec.retention").stdout

    install(plane, later)  # the API server publishes a definition's fields a moment after it took the definition
    until_outside(lambda: "A field of later." in explained(), SECONDS_MAX)
    assert len(stored(plane)) == len(OURS)
    install(plane)  # and a rollback of the chart takes them away
    until_outside(lambda: "A field of later." not in explained(), SECONDS_MAX)
    assert len(stored(plane)) == len(OURS)


def test_namespaces_that_are_not_watched_any_more_lose_their_role(plane: ControlPlane) -> None:
    for name in ("first", "second"):
        shows(plane, "create", "namespace", name)
    install(plane, values={"watchNamespaces": ["first", "second"]})
    listing = ("get", "rolebindings", "--all-namespaces", "--output=jsonpath={.items[*].metadata.namespace}")
    assert {"first", "second"} <= set(shows(plane, *listing).split())
    install(plane, values={"watchNamespaces": ["second"]})
    assert {"first", "second"} & set(shows(plane, *listing).split()) == {"second"}


def test_definitions_go_with_the_release_where_that_is_said(plane: ControlPlane) -> None:
    assert "deletes every KafkaCluster" in install(plane, values={"crds": {"keep": False}})
    assert set(definitions(plane)) >= set(DEFINITIONS)
    # An API server that is still filling a kind's watch cache fails to look for instances, may forget the definition
    # that goes and look again only with its 5 minutes of resync. So not before each is listed from that cache.
    until_outside(lambda: all(is_cached(plane, kind.plural) for kind in KINDS.values()), SECONDS_MAX)
    does(plane, "uninstall", "kavka")
    # Not by discovery: the API server may show a group for its 5 minutes of resync after the last definition went.
    until_outside(lambda: not [name for name in definitions(plane) if name.endswith(".kavka.dev")], SECONDS_MAX)


def is_cached(plane: ControlPlane, plural: str) -> bool:
    """Whether the API server lists this kind from its watch cache."""
    with closing(plane.api()) as api:
        return api.call("GET", f"/apis/kavka.dev/v1alpha1/{plural}", query={"resourceVersion": "0"}).is_well


def definitions(plane: ControlPlane) -> list[str]:
    with closing(plane.api()) as api:
        stored = api.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    assert stored.is_well, stored.message
    return [definition["metadata"]["name"] for definition in stored.body["items"]]


def test_who_may_view_or_edit_a_namespace_may_view_or_edit_our_kinds(plane: ControlPlane) -> None:
    install(plane)
    shows(plane, "create", "namespace", "shop")
    for role in ("view", "edit", "admin"):
        shows(plane, "create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er", "--namespace=shop")

    def may(user: str, verb: str, what: str) -> bool:
        resource, _, part = what.partition("/")
        asked = ("auth", "can-i", verb, resource, f"--subresource={part}", f"--as={user}", "--namespace=shop")
        return kubectl(plane, *asked).stdout.strip() == "yes"

    # The three are added up one by one, and none waits for another.
    until_outside(lambda: may("viewer", "list", "topics.kavka.dev"), SECONDS_MAX)
    until_outside(lambda: may("editer", "delete", "topics.kavka.dev"), SECONDS_MAX)
    until_outside(lambda: may("adminer", "create", "clientquotas.kavka.dev"), SECONDS_MAX)
    assert may("viewer", "get", "kafkaclusters.kavka.dev")
    assert not may("viewer", "patch", "kafkaclusters.kavka.dev")
    assert may("editer", "update", "topics.kavka.dev/scale")
    assert not may("editer", "update", "topics.kavka.dev/status")
    assert not may("nobody", "list", "topics.kavka.dev")
