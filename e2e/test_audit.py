"""The trail of a cluster of pods, asked by runs of its CronJob: each number is what librdkafka's clients counted."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from e2e.asking import SECONDS_MAX, until
from e2e.images import TAG
from e2e.machine import STATE
from e2e.scene import Scene
from kavka_operator.platform.kubernetes.analytics import selector
from tests.kube.objects import pool, quota, volumes
from tests.support.control_plane import Json

RECORDS, SIZE = 3_000, 200
HELD_BACK, QUOTA_BYTES = 60, 1_000
NODE = pool("nodes", replicas=1, storage=volumes({"name": "data", "size": "1Gi"}))
LISTENERS = [
    {"name": "INSIDE", "port": 9092},
    {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}},
]
CONFIG = {"kavka.audit.interval.ms": "1000"}
NEW_YEAR = "0 0 1 1 *"
RUN_SECONDS_MAX = 1_200
"""A run of Spark compiles much, on processors that it shares with the node."""
SMALL: Json = {"cpu": "250m", "memory": "1Gi"}
ANALYTICS: Json = {"schedule": NEW_YEAR, "storage": {"volume": {"size": "1Gi"}}, "resources": SMALL}
WITH_SPARK: Json = {
    **ANALYTICS,
    "engine": "Spark",
    "image": f"kavka.local/audit-spark:{TAG}",
    "resources": {"cpu": "250m", "memory": "1536Mi"},
    "executors": {"instances": 1, "resources": {"cpu": "250m", "memory": "1536Mi"}},
}
FLIGHTS, OLD = "flights", "old"


def wants(scene: Scene, **audit: object) -> None:
    """Apply the cluster of one node."""
    scene.wants(NODE, listeners=LISTENERS, config=CONFIG, audit=audit)


@dataclass(slots=True)
class Clients:
    """Clients on this machine, and what they were told."""

    bootstrap: str
    written: int = 0
    held_back: int = 0
    delays_ms: list[int] = field(default_factory=list)

    def prepare(self) -> None:
        """Make two topics, and delete one of them."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in (FLIGHTS, OLD)]).values():
            made.result(SECONDS_MAX)
        admin.delete_topics([OLD])[OLD].result(SECONDS_MAX)

    def write(self, count: int) -> None:
        """Produce as many records, all of which are kept."""
        faults = self._send(count, "importer")
        assert faults == [None] * count
        self.written += count

    def be_held_back(self) -> None:
        """Produce more than the quota of this client lets through, one record a request."""
        faults = self._send(HELD_BACK, "loader", each=True)
        assert faults == [None] * HELD_BACK
        self.held_back += HELD_BACK
        assert self.delays_ms

    def read(self) -> None:
        """Consume all that was written."""
        settings = {"group.id": "g", "client.id": "reader", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, **settings})
        consumer.subscribe([FLIGHTS])
        found = 0

        def is_done() -> bool:
            nonlocal found
            found += sum(message.error() is None for message in consumer.consume(500, 1.0))
            return found >= self.written

        until(is_done)
        consumer.close()
        assert found == self.written

    def _send(self, count: int, name: str, *, each: bool = False) -> list[Any]:
        """Produce; the fault of each record, None where it was kept."""
        faults: list[Any] = []
        settings = {"bootstrap.servers": self.bootstrap, "client.id": name, "acks": "all"}
        producer = Producer({**settings, "throttle_cb": self._throttled})
        for _ in range(count):
            producer.produce(FLIGHTS, b"v" * SIZE, on_delivery=lambda fault, _: faults.append(fault))
            producer.poll(0)
            if each:
                assert producer.flush(SECONDS_MAX) == 0
        assert producer.flush(SECONDS_MAX) == 0
        return faults

    def _throttled(self, event: Any) -> None:
        self.delays_ms.append(round(event.throttle_time * 1000))


def begun(scene: Scene) -> Clients:
    """Clients of a cluster that is ready."""
    scene.until_ready()
    (listener,) = scene.status()["listeners"]
    return Clients(str(listener["bootstrapServers"]))


def run(scene: Scene, name: str) -> tuple[str, str]:
    """Begin a run now, as the page of documentation says, and wait for its end: Complete or Failed, and its words."""
    scene.ask("create", "job", name, "--from=cronjob/main-audit")

    def ended() -> str:
        status = json.loads(scene.ask("get", "job", name, "--output", "json")).get("status", {})
        ends = (found["type"] for found in status.get("conditions", ()) if found["type"] in {"Complete", "Failed"})
        return next(ends, "")

    until(ended, RUN_SECONDS_MAX)
    return ended(), scene.ask("logs", f"job/{name}", "--container", "audit")


def lake(scene: Scene) -> Path:
    """The directory that this Kubernetes gives as the volume of the analytics."""
    volume = scene.ask("get", "pvc", "main-audit", "--output", "jsonpath={.spec.volumeName}")
    return STATE / "volumes" / volume / "audit"


def table(scene: Scene, name: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    found = duckdb.connect().read_parquet(str(lake(scene) / "tables" / f"{name}.parquet"))
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def counted(scene: Scene) -> tuple[int, int, int]:
    """What the answers say: records of the importer, those of the loader, and milliseconds that the loader waited."""
    delays = table(scene, "throttle_incidents")
    written = dict.fromkeys(("importer", "loader"), 0)
    for row in table(scene, "top_talkers"):
        if (row["operation"], row["topic"]) == ("WRITE", FLIGHTS):
            written[row["client_id"]] += row["records"]
    waited_ms = sum(row["throttle_time_ms"] for row in delays if row["client_id"] == "loader")
    return written["importer"], written["loader"], waited_ms


def until_told(scene: Scene, name: str, clients: Clients) -> str:
    """Run until the answers say what clients counted, as a trail is written a moment later; what the last run said."""
    said: list[str] = []
    wanted = (clients.written, clients.held_back, sum(clients.delays_ms))

    def is_told() -> bool:
        end, words = run(scene, f"{name}-{len(said)}")
        assert end == "Complete", words
        said.append(words)
        found = counted(scene)
        assert all(part <= most for part, most in zip(found, wanted, strict=True)), (found, wanted)
        return found == wanted

    until(is_told)
    return said[-1]


def analytics(scene: Scene) -> Json:
    """What the cluster's status says of the runs."""
    found: Json = scene.status().get("analytics", {})
    return found


def until_gone(scene: Scene, kinds: str) -> None:
    """Wait until no object of these kinds is left of the analytics."""
    ours = ",".join(f"{name}={value}" for name, value in selector("main").items())
    until(lambda: not scene.ask("get", kinds, "--selector", ours, "--output", "name"))


def test_runs_of_the_cron_job_tell_what_clients_counted(scene: Scene) -> None:
    wants(scene, analytics=ANALYTICS)
    clients = begun(scene)
    until(lambda: analytics(scene).get("state") == "Waiting")
    clients.prepare()
    scene.make(quota("loader", entity={"clientId": {"name": "loader"}}, limits={"producerByteRate": QUOTA_BYTES}))
    scene.until_ready("clientquotas", "loader")
    clients.write(RECORDS)
    clients.read()
    clients.be_held_back()

    said = until_told(scene, "first", clients)
    assert "/data/audit/report.html" in said
    until(lambda: analytics(scene).get("state") == "Succeeded")
    assert analytics(scene)["successTime"] >= analytics(scene)["startTime"]
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
