"""The audit trail of a cluster of pods and the runs that ask it, on a real API server with its controllers."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes
from tests.kube.test_operator import Operated
from tests.kube.test_pods import RUNS, begun, find, names, of_pods, place, say
from tests.support.control_plane import Json
from tests.support.servers import Server, start_server

VOLUME: Json = {"volume": {"size": "1Gi"}}
BUCKET: Json = {
    "s3": {
        "bucket": "audit",
        "prefix": "a/main",
        "endpoint": "http://store:9000",
        "credentialsSecret": {"name": "store"},
        "caSecret": {"name": "store"},
        "workSize": "1024Mi",
    }
}
OURS = ("roles", "rolebindings", "serviceaccounts")


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


def asked(storage: Json = VOLUME, schedule: str = "0 * * * *", **fields: object) -> Json:
    """A cluster of one pod whose trail is asked."""
    analytics = {"schedule": schedule, "storage": storage, "image": "kavka/audit:1", **fields}
    return of_pods(1, audit={"analytics": analytics})


def answered(scene: Operated, resource: Json) -> None:
    """Apply a cluster, and let its broker answer: its runs are made only then."""
    begun(scene, resource)
    assert names(scene, "cronjobs") == []
    say(scene, "pods-nodes-0-0", RUNS)


def told(scene: Operated) -> Json:
    """How the runs stand, by the status."""
    found: Json = scene.status("KafkaCluster", "pods").get("analytics", {})
    return found


def observed(scene: Operated) -> bool:
    """Whether the operator has seen the cluster as it is wanted now."""
    generation = scene.kubernetes.get("KafkaCluster", "pods")["metadata"]["generation"]
    return bool(scene.status("KafkaCluster", "pods").get("observedGeneration") == generation)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"engine": "Spark", "executors": {"instances": 2, "resources": {"cpu": "0.5", "memory": "1536Mi"}}},
        {"storage": BUCKET},
        {"userSecret": {"name": "auditor"}},
        {"engine": "Spark", "pod": {"tolerations": [{"key": "only", "operator": "Exists"}]}},
    ],
    ids=["DuckDB", "Spark", "a bucket", "a user", "Spark and tolerations"],
)
def test_what_is_made_is_as_it_was_applied(operated: Operated, fields: Json) -> None:
    """What the API server fills in, and how it spells amounts, is taken for no change."""
    answered(operated, asked(**fields))
    operated.until(lambda: told(operated).get("state") == "Waiting")
    operated.until(lambda: names(operated, "poddisruptionbudgets") == ["pods-nodes-0"])
    is_spark = "engine" in fields
    assert names(operated, "cronjobs") == ["pods-audit"]
    assert [names(operated, kind) == ["pods-audit"] for kind in OURS[:2]] == [is_spark] * 2
    operated.stop()
    operated.start()
    before = operated.writes()
    again = asked(**fields)
    again["spec"]["rollout"] = {"delaySeconds": 1}
    assert operated.kubernetes.apply(again).is_well
    operated.until(lambda: observed(operated))
    assert set(operated.writes()[len(before) :]) <= {"KafkaCluster pods status"}


def test_a_run_is_seen_and_analytics_that_are_taken_out_go_and_leave_their_claim(operated: Operated) -> None:
    answered(operated, asked(engine="Spark"))
    operated.until(lambda: told(operated).get("state") == "Waiting")
    operated.kubernetes.shows("create", "job", "now", "--from=cronjob/pods-audit")
    operated.until(lambda: told(operated).get("state") == "Running")
    (pod,) = [name for name in names(operated, "pods") if name.startswith("now-")]
    spec = find(operated, "pods", pod)["spec"]
    assert spec["serviceAccountName"] == "pods-audit"
    labels = find(operated, "pods", pod)["metadata"]["labels"]
    assert "kavka.dev/cluster" not in labels, "no Service of the nodes leads to it"
    assert operated.kubernetes.apply(of_pods(1, audit={})).is_well
    operated.until(lambda: names(operated, "cronjobs") == names(operated, "jobs") == [])
    operated.until(lambda: names(operated, "roles") == names(operated, "rolebindings") == [])
    operated.until(lambda: "pods-audit" not in names(operated, "serviceaccounts"))
    assert "pods-audit" in names(operated, "persistentvolumeclaims")
    operated.until(lambda: told(operated) == {})


def test_a_schedule_that_cron_does_not_have_is_told_in_the_words_of_the_api_server(operated: Operated) -> None:
    answered(operated, asked(schedule="61 * * * *"))
    operated.until(lambda: told(operated).get("state") == "Refused")
    assert "spec.schedule" in told(operated)["message"]
    assert operated.kubernetes.apply(asked()).is_well
    operated.until(lambda: told(operated).get("state") == "Waiting")
    assert "message" not in told(operated)


def test_the_key_is_in_the_secret_and_in_nothing_that_people_read(operated: Operated) -> None:
    answered(operated, asked())
    operated.until(lambda: told(operated).get("state") == "Waiting")
    text = find(operated, "secrets", "pods-audit-key")["data"]["audit.key"]
    key = base64.b64decode(text).decode()
    assert len(bytes.fromhex(key)) == 32
    kinds = "kafkaclusters,pods,statefulsets,cronjobs,events,configmaps,persistentvolumeclaims"
    everything = operated.kubernetes.shows("get", kinds, "--output", "json", "--show-managed-fields")
    for place_of_it in (everything, operated.log.read_text()):
        assert key not in place_of_it
        assert text not in place_of_it
    operated.stop()
    operated.start()
    assert operated.kubernetes.apply(asked(schedule="5 * * * *")).is_well
    operated.until(lambda: observed(operated))
    assert find(operated, "secrets", "pods-audit-key")["data"]["audit.key"] == text


def test_a_run_is_given_the_keys_of_a_store_and_nobody_else_reads_them(operated: Operated) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "kavka-tests-key", "AWS_SECRET_ACCESS_KEY": "kavka-tests-secret"}
    body = {"metadata": {"name": "store"}, "stringData": keys}
    assert operated.kubernetes.api.call("POST", place(operated, "secrets"), body).is_well
    answered(operated, asked(BUCKET))
    operated.until(lambda: told(operated).get("state") == "Waiting")
    operated.kubernetes.shows("create", "job", "now", "--from=cronjob/pods-audit")
    operated.until(lambda: told(operated).get("state") == "Running")
    (pod,) = [name for name in names(operated, "pods") if name.startswith("now-")]
    spec = find(operated, "pods", pod)["spec"]
    (container,) = spec["containers"]
    given = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one}
    assert {name: one["key"] for name, one in given.items()} == {name: name for name in (*keys, "AWS_SESSION_TOKEN")}
    assert [volume["emptyDir"] for volume in spec["volumes"] if volume["name"] == "data"] == [{"sizeLimit": "1Gi"}]
    assert "pods-audit" not in names(operated, "persistentvolumeclaims")
    kinds = "kafkaclusters,pods,cronjobs,jobs,events,configmaps"
    everything = operated.kubernetes.shows("get", kinds, "--output", "json", "--show-managed-fields")
    for text in (everything, operated.log.read_text()):
        assert not [value for value in keys.values() if value in text]
        assert base64.b64encode(keys["AWS_SECRET_ACCESS_KEY"].encode()).decode() not in text


def test_a_secret_that_a_person_has_made_before_is_used(operated: Operated) -> None:
    body = {"metadata": {"name": "pods-audit-key"}, "stringData": {"audit.key": "k" * 64}}
    assert operated.kubernetes.api.call("POST", place(operated, "secrets"), body).is_well
    begun(operated, asked())
    pod = find(operated, "pods", "pods-nodes-0-0")
    assert [volume for volume in pod["spec"]["volumes"] if "secret" in volume]
    kept = find(operated, "secrets", "pods-audit-key")["data"]["audit.key"]
    assert base64.b64decode(kept).decode() == "k" * 64
    assert json.dumps(kept) not in operated.log.read_text()
