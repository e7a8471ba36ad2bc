"""The resource definitions on a real API server: applied, compared, explained, listed, named."""

import json
from collections.abc import Callable

import pytest

from kavka_operator.api.kinds import KINDS
from tests.kube.cluster import CRDS, Kubernetes
from tests.kube.objects import cluster, quota, topic, user
from tests.support.control_plane import Json
from tools.definitions.schema import schema_of

SAMPLES = {
    "KafkaCluster": cluster("main"),
    "Topic": topic("orders"),
    "ClientQuota": quota("etl"),
    "KafkaUser": user("etl"),
}
STRIMZI = {"k", "kc", "kctr", "kb", "kmm2", "knp", "kr", "kt", "ku", "sps"}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def kubernetes(shared: Kubernetes) -> Kubernetes:
    """The namespace of all of these tests."""
    return shared


def spoken(kind: str) -> str:
    """The name of a kind as a person types it."""
    return KINDS[kind].plural


@pytest.mark.parametrize("way", ["--server-side", "--server-side=false"])
def test_the_definitions_are_accepted_and_then_do_not_differ(kubernetes: Kubernetes, way: str) -> None:
    extra = [way, "--force-conflicts"] if way == "--server-side" else [way]
    kubernetes.shows("apply", *extra, "-f", str(CRDS))
    assert kubernetes.shows("diff", *extra, "-f", str(CRDS)) == ""


@EVERY_KIND
@pytest.mark.parametrize("way", ["--server-side", "--server-side=false"])
def test_a_resource_does_not_differ_from_what_was_applied(kubernetes: Kubernetes, kind: str, way: str) -> None:
    text = json.dumps(SAMPLES[kind])
    kubernetes.shows("apply", way, "-f", "-", stdin=text)
    assert kubernetes.shows("diff", way, "-f", "-", stdin=text) == ""


@EVERY_KIND
def test_each_field_is_explained(kubernetes: Kubernetes, kind: str) -> None:
    said = kubernetes.shows("explain", f"{spoken(kind)}.spec", "--recursive")
    properties = schema_of(KINDS[kind])["properties"]["spec"]["properties"]
    assert [field for field in properties if f"  {field}\t" not in said] == []
    described = kubernetes.shows("explain", f"{spoken(kind)}.spec")
    assert "<no description>" not in described


@EVERY_KIND
def test_the_columns_are_shown(kubernetes: Kubernetes, kind: str) -> None:
    kubernetes.shows("apply", "-f", "-", stdin=json.dumps(SAMPLES[kind]))
    columns = [column for column in KINDS[kind].columns if not column.priority]
    head = kubernetes.shows("get", spoken(kind)).splitlines()[0]
    assert head.split() == ["NAME", *(word for column in columns for word in column.name.upper().split())]
    wide = kubernetes.shows("get", spoken(kind), "--output", "wide").splitlines()[0].split()
    assert {column.name.upper() for column in KINDS[kind].columns} <= set(wide)


@EVERY_KIND
def test_the_short_name_and_the_category_find_it(kubernetes: Kubernetes, kind: str) -> None:
    name = SAMPLES[kind]["metadata"]["name"]
    kubernetes.shows("apply", "-f", "-", stdin=json.dumps(SAMPLES[kind]))
    for words in ((KINDS[kind].short_name,), ("kavka",)):
        found = kubernetes.shows("get", *words, "--output", "name").splitlines()
        assert found == [f"{kind.lower()}.kavka.dev/{name}"]


def test_no_short_name_is_one_of_strimzis() -> None:
    assert not STRIMZI & {kind.short_name for kind in KINDS.values()}


def test_no_default_speaks_of_one_machine(kubernetes: Kubernetes) -> None:
    answer = kubernetes.create(SAMPLES["KafkaCluster"], dry=True)
    assert "127.0.0.1" not in json.dumps(answer.body["spec"])


@EVERY_KIND
def test_a_field_of_a_later_version_is_dropped_from_a_status(kubernetes: Kubernetes, kind: str) -> None:
    name = SAMPLES[kind]["metadata"]["name"]
    assert kubernetes.create(SAMPLES[kind]).is_well
    body = {**kubernetes.get(kind, name), "status": {"laterField": 1, "observedGeneration": 1}}
    answer = kubernetes.api.call("PUT", kubernetes.path(kind, name, "status"), body)
    assert answer.is_well, answer.message
    assert "laterField" not in kubernetes.get(kind, name)["status"]
    assert kubernetes.get(kind, name)["status"]["observedGeneration"] == 1


@EVERY_KIND
def test_a_resource_that_nobody_looked_at_is_not_current(
    kubernetes: Kubernetes, kstatus: Callable[[Json], str], kind: str
) -> None:
    assert kubernetes.create(SAMPLES[kind]).is_well
    assert kstatus(kubernetes.get(kind, SAMPLES[kind]["metadata"]["name"])) == "InProgress"


READY = {"type": "Ready", "lastTransitionTime": "2026-11-21T12:00:00Z", "message": "it is so", "reason": "Ready"}


@EVERY_KIND
@pytest.mark.parametrize(
    ("conditions", "verdict"),
    [
        ([{**READY, "status": "True"}], "Current"),
        ([{**READY, "status": "False", "reason": "Creating"}], "InProgress"),
        ([{**READY, "status": "Unknown", "reason": "NoSuchCluster"}], "InProgress"),
        ([{**READY, "status": "False"}, {**READY, "type": "Reconciling", "status": "True"}], "InProgress"),
        ([{**READY, "status": "False"}, {**READY, "type": "Stalled", "status": "True"}], "Failed"),
    ],
    ids=["ready", "creating", "unknown", "reconciling", "stalled"],
)
def test_a_status_is_judged_by_kstatus_as_it_is_meant(
    kubernetes: Kubernetes, kstatus: Callable[[Json], str], kind: str, conditions: list[Json], verdict: str
) -> None:
    name = SAMPLES[kind]["metadata"]["name"]
    assert kubernetes.create(SAMPLES[kind]).is_well
    answer = kubernetes.see(kind, name, {"observedGeneration": 1, "conditions": conditions})
    assert answer.is_well, answer.message
    assert kstatus(kubernetes.get(kind, name)) == verdict
