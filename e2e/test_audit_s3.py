"""The trail of a cluster of pods in a bucket: pods of its CronJob write to an S3 server that speaks TLS, and what is
there then is what librdkafka's clients counted. What the server refuses is in the status, and no key is anywhere.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from e2e.cluster import image
from e2e.cluster_namespace import Scene
from e2e.images import TAG
from e2e.kubectl import ask, until
from e2e.needs import machine
from e2e.release import OPERATOR, OPERATORS
from e2e.trail import (
    ANALYTICS,
    CONFIG,
    FLIGHTS,
    NODE,
    RECORDS,
    RUN_SECONDS_MAX,
    SIZE,
    Clients,
    analytics,
    play,
    run,
    until_told,
)
from e2e.trail import answer as answer_in
from tests.support.control_plane import Json
from tests.support.s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server, s3_server
from tests.support.secured import Certificates, certificates

LISTENERS = [
    {"name": "INSIDE", "port": 9092},
    {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}},
]
PREFIX = "audit/main"
WITH_SPARK = image("audit-spark", TAG)
BY_SPARK: Json = {
    "engine": "Spark",
    "image": WITH_SPARK,
    "resources": {"cpu": "250m", "memory": "1536Mi"},
    "executors": {"instances": 1, "resources": {"cpu": "250m", "memory": "1536Mi"}},
}
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
WRONG = "of another store, that no output has"
FIELD = "spec.audit.analytics.storage.s3"


@dataclass(frozen=True, slots=True)
class Store:
    """An S3 server on this machine, which pods reach by its name."""

    server: S3Server
    name: str
    signed: Certificates

    def spec(self, bucket: str, **fields: object) -> Json:
        """The place of the tables, as a KafkaCluster names it."""
        asked = {
            "bucket": bucket,
            "prefix": PREFIX,
            "endpoint": self.server.endpoint_at(self.name),
            "region": REGION,
            "credentialsSecret": {"name": "store"},
            "caSecret": {"name": "store"},
            "workSize": "1Gi",
        }
        return {"s3": {**asked, **fields}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    directory, (address, name) = tmp_path_factory.mktemp("store"), machine()
    signed = certificates(directory / "certificates", f"DNS:{name}")
    with s3_server(directory, address=address, signed=signed) as server:
        yield Store(server, name, signed)


def wants(scene: Scene, storage: Json, **fields: object) -> None:
    """Apply the cluster of one node, with runs that write there."""
    asked = {"analytics": {**ANALYTICS, "storage": storage, **fields}}
    scene.wants(NODE, listeners=LISTENERS, config=CONFIG, audit=asked)


def keep(scene: Scene, **texts: str) -> None:
    """Write the Secret of the store, with these texts and no other."""
    scene.ask("delete", "secret", "store", "--ignore-not-found")
    scene.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store"}, "stringData": texts})


def begun(scene: Scene) -> Clients:
    """Clients of a cluster that is ready, and whose runs are about to be made."""
    scene.until_ready()
    until(lambda: analytics(scene).get("state") == "Waiting")
    (listener,) = scene.status()["listeners"]
    bootstrap = str(listener["bootstrapServers"])
    return Clients(lambda name: {"bootstrap.servers": bootstrap, "client.id": name})


def entries(kept: Path) -> list[tuple[object, ...]]:
    """The rows of the trail in the bucket, by offset."""
    files = [str(file) for file in kept.glob("entries/*/*.parquet")]
    return duckdb.connect().read_parquet(files, union_by_name=True).order('partition, "offset"').fetchall()


def is_gone_on_with(kept: Path, before: list[tuple[object, ...]]) -> bool:
    """Whether a run has added to the trail, and has read nothing twice."""
    after = entries(kept)
    assert after[: len(before)] == before
    places = [row[:2] for row in after]
    assert len({*places}) == len(places)
    return len(after) > len(before)


def test_runs_in_pods_keep_in_a_bucket_what_clients_counted(scene: Scene, store: Store) -> None:
    kept = store.server.bucket("whole") / PREFIX
    keep(scene, **KEYS, **{"ca.crt": store.signed.text("ca.crt")})
    wants(scene, store.spec("whole"))
    clients = begun(scene)
    play(scene, clients)

    said = until_told(scene, "first", clients, kept)
    assert f"s3://whole/{PREFIX}/report.html" in said
    until(lambda: analytics(scene).get("state") == "Succeeded")
    assert answer_in(kept, "audit_gaps") == []
    use = {
        (row["client_id"], row["operation"]): row for row in answer_in(kept, "top_talkers") if row["topic"] == FLIGHTS
    }
    assert use["reader", "READ"]["bytes"] >= RECORDS * SIZE
    page = (kept / "report.html").read_text()
    assert all(name in page for name in ("importer", "loader", "reader"))
    assert not json.loads((kept / "lease.json").read_text())["held"]
    assert "main-audit" not in scene.ask("get", "pvc", "--output", "name")

    before = entries(kept)
    clients.write(RECORDS)
    said += until_told(scene, "second", clients, kept)
    assert is_gone_on_with(kept, before)
    no_key_is_told(scene, said)


def test_what_a_store_refuses_is_in_the_status_with_its_field(scene: Scene, store: Store) -> None:
    """No Secret, keys of another store, an authority of another, a bucket that is not there; right ones heal all."""
    kept = store.server.bucket("refusing") / PREFIX
    another = certificates(store.server.directory.parent / "theirs", f"DNS:{store.name}")
    authority = {"ca.crt": store.signed.text("ca.crt")}
    wants(scene, store.spec("refusing"))
    begun(scene).prepare()
    said = [fails(scene, "nothing", f'{FIELD}.caSecret: Secret "store"', "cannot be read")]
    keep(scene, **authority)
    said.append(fails(scene, "keyless", f'{FIELD}.credentialsSecret: Secret "store"', "there are no credentials"))
    keep(scene, **{**KEYS, "AWS_SECRET_ACCESS_KEY": WRONG}, **authority)
    said.append(fails(scene, "wrong", f'{FIELD}.credentialsSecret: Secret "store"', "SignatureDoesNotMatch"))
    keep(scene, **KEYS, **{"ca.crt": another.text("ca.crt")})
    said.append(fails(scene, "stranger", f'{FIELD}.caSecret: Secret "store"', "is not trusted"))
    assert not kept.exists()
    keep(scene, **KEYS, **authority)
    wants(scene, store.spec("nowhere"))
    until(lambda: "s3://nowhere" in scene.ask("get", "cronjob", "main-audit", "--output", "yaml"))
    said.append(fails(scene, "nowhere", f"{FIELD}.bucket: ", "there is no bucket nowhere at "))
    wants(scene, store.spec("refusing", region="eu-other-1"))
    until(lambda: "eu-other-1" in scene.ask("get", "cronjob", "main-audit", "--output", "yaml"))
    said.append(fails(scene, "elsewhere", f"{FIELD}.region: "))
    wants(scene, store.spec("refusing"))
    until(lambda: "eu-other-1" not in scene.ask("get", "cronjob", "main-audit", "--output", "yaml"))
    end, words = run(scene, "right")
    assert end == "Complete", words
    until(lambda: analytics(scene).get("state") == "Succeeded")
    assert "message" not in analytics(scene)
    assert (kept / "report.html").exists()
    no_key_is_told(scene, "".join(said) + words)


def fails(scene: Scene, name: str, *words: str) -> str:
    """Run, and have the status say in these words why it failed; the cluster is ready all the same. What it said."""
    end, said = run(scene, name)
    assert end == "Failed", said
    until(lambda: all(word in analytics(scene).get("message", "") for word in words))
    assert analytics(scene)["state"] == "Failed"
    assert scene.is_ready()
    return said


def no_key_is_told(scene: Scene, said: str) -> None:
    """No key stands in an object that is no Secret, in an event, in what a run says, or in the operator's log."""
    told = said + scene.ask(
        "get", "kafkaclusters,pods,cronjobs,jobs,events", "--output", "json", "--show-managed-fields"
    )
    told += ask("logs", OPERATOR, "--namespace", OPERATORS)
    assert "main-audit" in told
    for key in (*KEYS.values(), WRONG):
        assert key not in told
        assert b64encode(key.encode()).decode() not in told


def executors(scene: Scene) -> list[Json]:
    """The pods of executors."""
    found: list[Json] = json.loads(scene.ask("get", "pods", "--selector", "spark-role=executor", "--output", "json"))[
        "items"
    ]
    return found


def test_executors_write_to_a_bucket_that_duckdb_began_and_share_no_volume(scene: Scene, store: Store) -> None:
    kept = store.server.bucket("larger") / PREFIX
    keep(scene, **KEYS, **{"ca.crt": store.signed.text("ca.crt")})
    wants(scene, store.spec("larger"))
    clients = begun(scene)
    play(scene, clients)
    said = until_told(scene, "smaller", clients, kept)
    before = entries(kept)

    wants(scene, store.spec("larger"), **BY_SPARK)
    until(lambda: scene.ask("get", "rolebindings", "main-audit", "--ignore-not-found", "--output", "name"))
    until(lambda: WITH_SPARK in scene.ask("get", "cronjob", "main-audit", "--output", "yaml"))
    clients.write(RECORDS)
    scene.ask("create", "job", "seen", "--from=cronjob/main-audit")
    until(lambda: executors(scene), RUN_SECONDS_MAX)
    (pod,) = executors(scene)
    no_key_is_told(scene, said)
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not [volume for volume in pod["spec"]["volumes"] if "persistentVolumeClaim" in volume]
    scene.ask("wait", "--for=condition=Complete", "job/seen", f"--timeout={RUN_SECONDS_MAX}s")
    words = scene.ask("logs", "job/seen")
    assert "403" not in words
    said += words
    assert is_gone_on_with(kept, before)

    before = entries(kept)
    clients.write(RECORDS)
    said += until_told(scene, "larger", clients, kept)
    assert is_gone_on_with(kept, before)
    assert answer_in(kept, "audit_gaps") == []
    assert "main-audit" not in scene.ask("get", "pvc", "--output", "name")
    left = [file.name for file in kept.iterdir() if file.name.endswith(".part")]
    assert not left, "executors leave nothing beside the lake"
    no_key_is_told(scene, said)
