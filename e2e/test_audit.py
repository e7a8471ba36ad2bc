"""The trail of a cluster of pods, asked by runs of its CronJob: each number is what librdkafka's clients counted."""

import json

from e2e.cluster import image
from e2e.cluster_namespace import Scene
from e2e.images import TAG
from e2e.kubectl import SECONDS_MAX, until
from e2e.trail import (
    ANALYTICS,
    CONFIG,
    FLIGHTS,
    NODE,
    OLD,
    RECORDS,
    RUN_SECONDS_MAX,
    SIZE,
    Clients,
    analytics,
    lake,
    play,
    run,
    table,
    until_told,
)
from kavka_operator.platform.kubernetes.objects.analytics import selector
from tests.support.control_plane import Json

LISTENERS = [
    {"name": "INSIDE", "port": 9092},
    {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}},
]
WITH_SPARK: Json = {
    **ANALYTICS,
    "engine": "Spark",
    "image": image("audit-spark", TAG),
    "resources": {"cpu": "250m", "memory": "1536Mi"},
    "executors": {"instances": 1, "resources": {"cpu": "250m", "memory": "1536Mi"}},
}


def wants(scene: Scene, **audit: object) -> None:
    """Apply the cluster of one node."""
    scene.wants(NODE, listeners=LISTENERS, config=CONFIG, audit=audit)


def begun(scene: Scene) -> Clients:
    """Clients of a cluster that is ready."""
    scene.until_ready()
    (listener,) = scene.status()["listeners"]
    bootstrap = str(listener["bootstrapServers"])
    return Clients(lambda name: {"bootstrap.servers": bootstrap, "client.id": name})


def until_gone(scene: Scene, kinds: str) -> None:
    """Wait until no object of these kinds is left of the analytics."""
    ours = ",".join(f"{name}={value}" for name, value in selector("main").items())
    until(lambda: not scene.ask("get", kinds, "--selector", ours, "--output", "name"))


def test_runs_of_the_cron_job_tell_what_clients_counted(scene: Scene) -> None:
    wants(scene, analytics=ANALYTICS)
    clients = begun(scene)
    until(lambda: analytics(scene).get("state") == "Waiting")
    play(scene, clients)

    said = until_told(scene, "first", clients)
    assert "/data/audit/report.html" in said
    until(lambda: analytics(scene).get("state") == "Succeeded")
    assert analytics(scene)["successTime"] >= analytics(scene)["startTime"]
    summary = analytics(scene)["summary"]
    weights = {answer["question"]: (answer["weight"], answer["rows"]) for answer in summary["answers"]}
    assert ("well", 0) in weights.values()
    assert ("told", len(table(scene, "top_talkers"))) in weights.values()
    assert table(scene, "audit_gaps") == []
    made = {(row["operation"], row["resource_type"], row["resource"]) for row in table(scene, "config_changes")}
    assert {("CREATE", "topic", FLIGHTS), ("CREATE", "topic", OLD), ("DELETE", "topic", OLD)} <= made
    moved = {(row["client_id"], row["operation"], row["topic"]): row["bytes"] for row in table(scene, "top_talkers")}
    assert moved["reader", "READ", FLIGHTS] >= RECORDS * SIZE
    page = (lake(scene) / "report.html").read_text()
    assert all(name in page for name in ("importer", "loader", "reader"))

    clients.write(RECORDS)
    until_told(scene, "second", clients)
    what_stays_secret(scene)


def what_stays_secret(scene: Scene) -> None:
    """The key of the trail stands in its Secret and nowhere else; the pod of a run has no token."""
    key = json.loads(scene.ask("get", "secret", "main-audit-key", "--output", "json"))["data"]["audit.key"]
    told = scene.ask("get", "kafkaclusters,pods,cronjobs,jobs,events", "--output", "json")
    assert key not in told
    (job,) = json.loads(scene.ask("get", "cronjobs", "--output", "json"))["items"]
    assert job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert "main-audit" not in scene.ask("get", "roles,serviceaccounts", "--output", "name")


def test_a_run_that_fails_says_why_and_tables_stay_without_analytics(scene: Scene) -> None:
    """The image has no Spark, which the status says; without analytics the CronJob goes, and the volume stays."""
    wants(scene, analytics=ANALYTICS)
    begun(scene).prepare()
    end, _ = run(scene, "first")
    assert end == "Complete"
    wants(scene, analytics={**ANALYTICS, "engine": "Spark"})
    until(lambda: scene.ask("get", "rolebindings", "main-audit", "--ignore-not-found", "--output", "name"))
    end, words = run(scene, "spark")
    assert end == "Failed"
    assert "kavka[spark]" in words
    until(lambda: analytics(scene).get("state") == "Failed")
    assert "kavka[spark]" in analytics(scene)["message"]
    wants(scene)
    until_gone(scene, "cronjobs,jobs,roles,rolebindings,serviceaccounts,networkpolicies")
    until(lambda: not analytics(scene))
    assert (lake(scene) / "report.html").exists()


def executors(scene: Scene) -> dict[str, Json]:
    """The executors' pods, by name."""
    listed = json.loads(scene.ask("get", "pods", "--selector", "spark-role=executor", "--output", "json"))["items"]
    return {item["metadata"]["name"]: item for item in listed}


def test_executors_are_pods_that_go_with_the_run_and_both_engines_tell_the_same(scene: Scene) -> None:
    wants(scene, analytics=WITH_SPARK)
    clients = begun(scene)
    clients.prepare()
    clients.write(RECORDS)
    until(lambda: scene.ask("get", "rolebindings", "main-audit", "--ignore-not-found", "--output", "name"))
    scene.ask("create", "job", "seen", "--from=cronjob/main-audit")
    until(lambda: executors(scene), RUN_SECONDS_MAX)
    (pod,) = executors(scene).values()
    assert pod["spec"]["automountServiceAccountToken"] is False
    (owner,) = pod["metadata"]["ownerReferences"]
    assert owner["kind"] == "Pod"
    assert owner["name"].startswith("seen-")
    scene.ask("wait", "--for=condition=Complete", "job/seen", f"--timeout={SECONDS_MAX}s")
    assert "403" not in scene.ask("logs", "job/seen")
    until(lambda: not executors(scene))

    said = until_told(scene, "spark", clients)
    assert "/data/audit/report.html" in said
    assert table(scene, "audit_gaps") == []
    tables = {name: table(scene, name) for name in ("top_talkers", "config_changes", "throttle_incidents")}
    wants(scene, analytics=ANALYTICS)
    until_gone(scene, "roles,rolebindings,serviceaccounts")
    until(lambda: scene.ask("get", "cronjobs", "main-audit", "--ignore-not-found", "--output", "name"))
    clients.write(RECORDS)
    until_told(scene, "duckdb", clients)
    assert table(scene, "config_changes")[-len(tables["config_changes"]) :] == tables["config_changes"]
