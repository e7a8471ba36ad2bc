"""The Helm chart: linted, rendered, refused where values are wrong, and every object taken by a real API server."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import yaml

from kavka_operator.api.pools import NodePool
from kavka_operator.platform.kubernetes.objects.names import node_labels
from kavka_operator.platform.nodes import Node
from kavka_operator.process.console.live import SUBRESOURCES
from kavka_operator.process.operator import LEASE
from tests.kube.helm import CHART, helm, of_kind, only, rendered
from tests.support.control_plane import ControlPlane, Json, kubectl
from tests.support.waiting import until_outside
from tests.tidy.tree import ROOT
from tools.definitions.generate import MONITORING
from tools.kube.definitions import monitoring_definitions

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
RELEASE = {"release": "prometheus"}
EVERYTHING: Json = {
    "fullnameOverride": "streams",
    "image": {"repository": "images.example.com:5000/kavka/operator", "digest": DIGEST, "pullPolicy": "Always"},
    "brokerImage": {"repository": "images.example.com:5000/kavka/broker", "tag": "1.2.3"},
    "auditImage": {"repository": "images.example.com:5000/kavka/audit", "tag": "1.2.3"},
    "imagePullSecrets": [{"name": "pull"}],
    "replicas": 2,
    "watchNamespaces": ["first", "second"],
    "rollingClustersMax": 2,
    "externalSecrets": {"first": ["payments-ca", "payments-user"], "second": ["user.example"]},
    "userSecrets": ["first"],
    "securedNamespaces": ["second"],
    "serviceAccount": {"name": "robot", "annotations": {"example.com/team": "streams"}},
    "resources": {"limits": {"cpu": "1", "memory": "256Mi"}},
    "podAnnotations": {"example.com/note": "true"},
    "podLabels": {"team": "streams"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "only", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
    "priorityClassName": "system-cluster-critical",
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "podDisruptionBudget": {"enabled": True, "maxUnavailable": "50%"},
    "networkPolicy": {"enabled": True},
    "console": {"enabled": True, "host": "0.0.0.0", "port": 9001},
    "metrics": {
        "port": 9000,
        **{key: {"enabled": True, "labels": RELEASE} for key in ("podMonitor", "brokerPodMonitor", "rules")},
    },
    "extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-map"}},
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-text\n",
    ],
}
VALUES: dict[str, Json] = {
    "nothing": {},
    "everything": EVERYTHING,
    "no image of others": {"brokerImage": {"repository": ""}, "auditImage": {"repository": ""}},
    "nothing optional": {
        "crds": {"enabled": False},
        "rbac": {"create": False, "aggregate": False},
        "serviceAccount": {"create": False},
        "admissionWarnings": {"enabled": False},
    },
    "definitions that go": {"crds": {"keep": False}},
}
REFUSED: dict[str, tuple[Json, str]] = {
    "unknown": ({"replica": 2}, "replica"),
    "unknown inside": ({"image": {"name": "x"}}, "name"),
    "a number as text": ({"replicas": "2"}, "replicas"),
    "less than none": ({"replicas": -1}, "replicas"),
    "fewer clusters than none": ({"rollingClustersMax": -1}, "rollingClustersMax"),
    "no repository": ({"image": {"repository": ""}}, "repository"),
    "a tag in the repository": ({"image": {"repository": "kavka operator"}}, "repository"),
    "a short digest": ({"image": {"digest": "sha256:abc"}}, "digest"),
    "no such policy": ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
    "one namespace as text": ({"watchNamespaces": "first"}, "watchNamespaces"),
    "a pattern of namespaces": ({"watchNamespaces": ["team-*"]}, "watchNamespaces"),
    "a Secret as text": ({"externalSecrets": {"first": "user"}}, "externalSecrets"),
    "every Secret": ({"externalSecrets": {"first": []}}, "externalSecrets"),
    "a pattern of Secrets": ({"externalSecrets": {"first": ["payments-*"]}}, "externalSecrets"),
    "Secrets of a pattern": ({"externalSecrets": {"team-*": ["user"]}}, "externalSecrets"),
    "Secrets of users in a pattern": ({"userSecrets": ["team-*"]}, "userSecrets"),
    "Secrets of users by name": ({"userSecrets": {"first": ["etl"]}}, "userSecrets"),
    "yes as text": ({"crds": {"keep": "yes"}}, "keep"),
    "an annotation that is no text": ({"podAnnotations": {"note": True}}, "podAnnotations"),
    "a variable without a name": ({"extraEnv": [{"value": "x"}]}, "extraEnv"),
    "a port that needs rights": ({"metrics": {"port": 80}}, "port"),
    "a budget of words": ({"podDisruptionBudget": {"maxUnavailable": "some"}}, "maxUnavailable"),
    "an upper-case name": ({"fullnameOverride": "Kavka"}, "fullnameOverride"),
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that has heard nothing of Kavka, but of three namespaces."""
    with ControlPlane(tmp_path_factory.mktemp("bare")) as plane:
        for name in ("kavka", "first", "second"):
            assert kubectl(plane, "create", "namespace", name).returncode == 0
        yield plane


def container(documents: list[Json]) -> Json:
    """The operator's container."""
    found: Json = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found


def environment(documents: list[Json]) -> dict[str, Any]:
    return {variable["name"]: variable.get("value") for variable in container(documents)["env"]}


@pytest.mark.parametrize("name", VALUES)
def test_the_chart_is_without_a_fault_for_helm(name: str) -> None:
    ran = helm("lint", "--strict", str(CHART), "--kube-version", "1.34.0", values=VALUES[name])
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", VALUES)
def test_the_api_server_takes_every_object(bare: ControlPlane, name: str) -> None:
    places = defaultdict(list)
    for document in rendered(VALUES[name]):
        places[document["metadata"].get("namespace", "kavka")].append(json.dumps(document))
    line = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "--field-manager=helm", "-f", "-")
    for place, texts in places.items():
        ran = kubectl(bare, *line, stdin="\n---\n".join(texts), namespace=place)
        assert ran.returncode == 0, ran.stderr
        assert len(ran.stdout.splitlines()) == len(texts)
        assert "Warning" not in ran.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_cannot_be_meant_are_refused_by_name(name: str) -> None:
    values, word = REFUSED[name]
    ran = helm("template", "kavka", str(CHART), "--kube-version", "1.34.0", values=values)
    assert ran.returncode != 0
    assert word in ran.stderr


def test_every_value_has_a_schema_that_takes_what_it_is_by_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()


def test_one_role_for_all_namespaces_or_one_in_each() -> None:
    wide, narrow = rendered(), rendered({"watchNamespaces": ["first", "second"]})
    assert [role["metadata"]["name"] for role in of_kind(wide, "ClusterRoleBinding")] == ["kavka-kavka"]
    assert [role["metadata"]["namespace"] for role in of_kind(wide, "RoleBinding")] == ["kavka"]
    assert of_kind(narrow, "ClusterRoleBinding") == []
    assert sorted(role["metadata"]["namespace"] for role in of_kind(narrow, "Role")) == ["first", "kavka", "second"]
    assert environment(narrow)["KAVKA_WATCH_NAMESPACES"] == "first,second"
    assert "KAVKA_WATCH_NAMESPACES" not in environment(wide)


def test_machines_are_asked_for_by_a_role_of_their_own_where_single_namespaces_are_watched() -> None:
    narrow = rendered({"watchNamespaces": ["first"], "rbac": {"machines": True}})
    (role,) = [role for role in of_kind(narrow, "ClusterRole") if role["metadata"]["name"] == "kavka-kavka"]
    assert [rule["resources"] for rule in role["rules"]] == [["nodes"]]
    assert environment(narrow)["KAVKA_SEE_MACHINES"] == "true"
    assert "KAVKA_SEE_MACHINES" not in environment(rendered({"rbac": {"machines": True}}))


def test_what_a_role_holds_is_named_and_it_reads_no_secrets() -> None:
    for role in (*of_kind(rendered(), "ClusterRole"), *of_kind(rendered(), "Role")):
        for rule in role["rules"]:
            words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not words & {"*", "escalate", "bind", "impersonate"}
            assert not any("*" in word for word in words)
            if "secrets" in rule["resources"]:
                assert (rule["resources"], rule["verbs"]) == (["secrets"], ["create"])


def test_the_role_that_shows_what_is_in_clusters_has_no_binding() -> None:
    documents = rendered()
    (role,) = [found for found in of_kind(documents, "ClusterRole") if "kafkaclusters/records" in str(found["rules"])]
    (rule,) = role["rules"]
    assert rule["verbs"] == ["get"]
    assert {*rule["resources"]} == {f"kafkaclusters/{name}" for name in SUBRESOURCES.values()}
    assert "aggregate" not in str(role["metadata"])
    bindings = [found for kind in ("RoleBinding", "ClusterRoleBinding") for found in of_kind(documents, kind)]
    assert role["metadata"]["name"] not in {binding["roleRef"]["name"] for binding in bindings}
    assert "kafkaclusters/records" not in str(of_kind(rendered({"console": {"enabled": False}}), "ClusterRole"))


def test_secrets_are_read_by_name_where_they_are_named() -> None:
    roles = of_kind(rendered({"externalSecrets": {"shop": ["ca", "user"]}}), "Role")
    (role,) = [role for role in roles if role["metadata"]["namespace"] == "shop"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["ca", "user"], "verbs": ["get"]}
    ]


def test_secrets_of_users_are_kept_where_that_is_allowed_and_never_listed() -> None:
    roles = of_kind(rendered({"userSecrets": ["shop"]}), "Role")
    (role,) = [role for role in roles if role["metadata"]["namespace"] == "shop"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"]}]


def test_certificates_are_kept_where_a_namespace_is_named() -> None:
    roles = of_kind(rendered({"securedNamespaces": ["shop", "shop"]}), "Role")
    (role,) = [role for role in roles if role["metadata"]["namespace"] == "shop"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch"]}]


def test_an_operator_that_runs_no_spark_may_write_no_roles() -> None:
    of_spark = {"roles", "rolebindings", "serviceaccounts"}
    for watched in ({}, {"watchNamespaces": ["first"]}):
        for is_held in (True, False):
            roles = [role for role in rendered({**watched, "rbac": {"spark": is_held}}) if "rules" in role]
            mine = [rule for role in roles if "aggregate" not in str(role["metadata"]) for rule in role["rules"]]
            held = {resource for rule in mine for resource in rule["resources"]}
            assert held & of_spark == (of_spark if is_held else set())
            assert any("deletecollection" in rule["verbs"] for rule in mine) == is_held


def test_the_lease_is_held_in_the_operators_own_namespace_alone() -> None:
    for values in ({}, {"watchNamespaces": ["first"]}):
        roles = [role for role in rendered(values) if role["kind"] in {"Role", "ClusterRole"}]
        holders = [role for role in roles if any("leases" in rule["resources"] for rule in role["rules"])]
        assert [(role["kind"], role["metadata"]["namespace"]) for role in holders] == [("Role", "kavka")]
        named = [name for rule in holders[0]["rules"] for name in rule.get("resourceNames", ())]
        assert named == [LEASE]


@pytest.mark.parametrize(("version", "policies"), [("1.29.0", 0), ("1.30.0", 2)])
def test_warnings_are_there_where_kubernetes_has_them(version: str, policies: int) -> None:
    ran = helm("template", "kavka", str(CHART), "--kube-version", version)
    documents = [document for document in yaml.safe_load_all(ran.stdout) if document]
    assert len(of_kind(documents, "ValidatingAdmissionPolicy")) == policies


def test_the_probes_and_prometheus_ask_the_port_that_the_operator_opens() -> None:
    documents = rendered({"metrics": {"port": 9000}})
    assert environment(documents)["KAVKA_LISTEN"] == ":9000"
    assert container(documents)["ports"] == [{"name": "metrics", "containerPort": 9000}]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container(documents)[probe]["httpGet"] == {"path": path, "port": "metrics"}


def test_the_page_for_people_is_reached_by_port_forward_alone_unless_another_host_is_written() -> None:
    closed = rendered({"networkPolicy": {"enabled": True}})
    assert environment(closed)["KAVKA_CONSOLE"] == "127.0.0.1:8081"
    opened = rendered({"networkPolicy": {"enabled": True}, "console": {"host": "0.0.0.0", "port": 9001}})
    assert environment(opened)["KAVKA_CONSOLE"] == "0.0.0.0:9001"
    for documents, ports in ((closed, ["metrics"]), (opened, ["metrics", "console"])):
        assert [port["name"] for port in container(documents)["ports"]] == ports
        (policy,) = [document for document in documents if document["kind"] == "NetworkPolicy"]
        assert policy["spec"]["ingress"] == [{"ports": [{"port": name} for name in ports]}]
    assert of_kind(closed, "Service") == []
    (service,) = of_kind(opened, "Service")
    assert service["spec"]["ports"] == [{"name": "console", "port": 9001, "targetPort": "console"}]
    (deployment,) = of_kind(opened, "Deployment")
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert "KAVKA_CONSOLE" not in environment(rendered({"console": {"enabled": False}}))


def test_two_pages_cannot_have_one_port() -> None:
    values: Json = {"console": {"port": 8080}}
    ran = helm("template", "kavka", str(CHART), "--kube-version", "1.34.0", values=values)
    assert ran.returncode != 0
    assert "console.port and metrics.port are both 8080" in ran.stderr


def monitoring(values: Json, *kinds: str) -> list[Json]:
    """What is made for Prometheus, where its operator has brought these kinds."""
    known = [word for kind in kinds for word in ("--api-versions", f"monitoring.coreos.com/v1/{kind}")]
    ran = helm("template", "kavka", str(CHART), "--kube-version", "1.34.0", *known, values=values)
    assert ran.returncode == 0, ran.stderr
    documents = [document for document in yaml.safe_load_all(ran.stdout) if document]
    return [document for document in documents if document["apiVersion"].startswith("monitoring.")]


def test_what_prometheus_reads_is_made_where_it_is_asked_for_and_its_kinds_are_known() -> None:
    assert monitoring(EVERYTHING) == []
    assert monitoring({}, "PodMonitor", "PrometheusRule") == []
    found = monitoring(EVERYTHING, "PodMonitor", "PrometheusRule")
    names = sorted(document["metadata"]["name"] for document in found)
    assert names == [
        "streams",
        "streams-analytics",
        "streams-audit",
        "streams-broker",
        "streams-brokers",
        "streams-operator",
        "streams-quotas",
    ]
    assert all(document["metadata"]["labels"]["release"] == "prometheus" for document in found)


def test_an_api_server_that_knows_those_kinds_takes_each_of_them(bare: ControlPlane) -> None:
    """The definitions are those of Prometheus' operator itself; what it would not understand is refused."""
    for definition in monitoring_definitions():
        ran = kubectl(bare, "apply", "--server-side", "--filename", str(definition))
        assert ran.returncode == 0, ran.stderr
    for name in ("podmonitors", "prometheusrules"):
        known = ("wait", "--for=condition=Established", f"crd/{name}.monitoring.coreos.com")
        # A definition that is new has no conditions yet, which kubectl takes for an error.
        until_outside(lambda known=known: kubectl(bare, *known).returncode == 0)  # type: ignore[misc]
    found = monitoring(EVERYTHING, "PodMonitor", "PrometheusRule")
    line = ("apply", "--server-side", "--validate=strict", "--field-manager=helm", "--filename", "-")
    place = found[0]["metadata"]["namespace"]
    ran = kubectl(bare, *line, stdin="\n---\n".join(map(json.dumps, found)), namespace=place)
    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr
    shown = kubectl(bare, "get", "podmonitors,prometheusrules", "--output", "name", namespace=place).stdout
    assert len(shown.split()) == len(found) == 7
    wrong = [{**found[0], "spec": {**found[0]["spec"], "selectr": {}}}]
    assert kubectl(bare, *line, stdin=json.dumps(wrong[0]), namespace=place).returncode != 0


def test_brokers_are_read_with_the_labels_that_rules_and_dashboards_ask_for() -> None:
    asked = {"metrics": {"brokerPodMonitor": {"enabled": True}}}
    (monitor,) = monitoring({**asked, "watchNamespaces": ["shop"]}, "PodMonitor")
    selector = monitor["spec"]["selector"]
    labels = node_labels("main", Node(0, NodePool(name="nodes"), None))
    assert selector["matchLabels"].items() <= labels.items()
    assert [wanted["key"] in labels for wanted in selector["matchExpressions"]] == [True]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert [change["targetLabel"] for change in endpoint["relabelings"]] == ["job", "cluster", "instance"]
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["shop"]}
    assert monitoring(asked, "PodMonitor")[0]["spec"]["namespaceSelector"] == {"any": True}


def test_the_rules_are_those_of_the_examples() -> None:
    found = monitoring({"metrics": {"rules": {"enabled": True}}}, "PrometheusRule")
    groups = [document["spec"]["groups"] for document in found]
    examples = [yaml.safe_load((ROOT / "examples/monitoring" / path).read_text())["groups"] for path in MONITORING]
    assert sorted(groups, key=str) == sorted(examples, key=str)


def test_an_image_is_named_by_digest_or_by_tag() -> None:
    documents = rendered(EVERYTHING)
    assert container(documents)["image"] == f"images.example.com:5000/kavka/operator@{DIGEST}"
    assert environment(documents)["KAVKA_BROKER_IMAGE"] == "images.example.com:5000/kavka/broker:1.2.3"
    assert container(rendered())["image"].endswith(f":{yaml.safe_load((CHART / 'Chart.yaml').read_text())['version']}")
    assert environment(documents)["KAVKA_AUDIT_IMAGE"] == "images.example.com:5000/kavka/audit:1.2.3"
    assert not {"KAVKA_BROKER_IMAGE", "KAVKA_AUDIT_IMAGE"} & environment(rendered(VALUES["no image of others"])).keys()


def test_clusters_are_rolled_in_turn_where_that_is_asked_for() -> None:
    assert environment(rendered(EVERYTHING))["KAVKA_ROLLING_CLUSTERS_MAX"] == "2"
    assert "KAVKA_ROLLING_CLUSTERS_MAX" not in environment(rendered())


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = re.search(r'^version = "(.+)"$', (ROOT / "operator/pyproject.toml").read_text(), re.MULTILINE)
    assert project is not None
    assert chart["version"] == chart["appVersion"] == project[1]


def test_the_pod_is_as_narrow_as_the_restricted_standard_asks(bare: ControlPlane) -> None:
    label = ("label", "namespace", "first", "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    assert kubectl(bare, *label).returncode == 0
    pod = only(rendered(), "Deployment")["spec"]["template"]
    del pod["spec"]["serviceAccountName"]  # its namespace has no such account
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": pod["spec"]}
    with closing(bare.api()) as api:
        answer = api.call("POST", "/api/v1/namespaces/first/pods", body, query={"dryRun": "All"})
        assert answer.is_well, answer.message
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        assert api.call("POST", "/api/v1/namespaces/first/pods", body, query={"dryRun": "All"}).status == 403
