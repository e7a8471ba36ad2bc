"""The audit trail of a cluster of pods: its key, and the runs that ask it."""

import json
import re
from typing import Any

import pytest

from kavka_audit.store import address
from kavka_operator.api.audit import (
    BUCKET_PATTERN,
    ENDPOINT_PATTERN,
    PREFIX_PATTERN,
    SPARK_OWN,
    SPARK_OWN_PREFIX,
    Size,
)
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.platform.kubernetes.live.api import ApiError
from kavka_operator.platform.kubernetes.objects import spark
from kavka_operator.platform.kubernetes.objects.settings import fingerprint
from kavka_operator.platform.kubernetes.objects.spec_hash import mark_of
from tests.unit.operator.pods import Scene, main

AS_PARQUET = ("--table-format", "parquet")
VOLUME = {"volume": {"size": "10Gi"}}
BUCKET = {"bucket": "audit", "credentialsSecret": {"name": "store"}}
OWN_STORE = {"prefix": "a/main", "endpoint": "https://s3.example.com", "region": "eu-1", "addressing": "Path"}
NAME = "main-audit"
MADE_FOR_SPARK = ("Role", "RoleBinding", "ServiceAccount")
AN_HOUR = 3600.0
ANSWERED = {"cluster_id": "7mW3dXw0Q4qv2Y3q1Zk9Hg"}


def asked(storage: Any = VOLUME, **fields: Any) -> KafkaCluster:
    """A cluster that has answered once, whose trail is asked each hour."""
    return main(audit={"analytics": {"schedule": "0 * * * *", "storage": storage, **fields}}, status=ANSWERED)


def scene_of(cluster: KafkaCluster) -> Scene:
    """A cluster that runs and rests."""
    scene = Scene(cluster)
    scene.start()
    return scene


def template_of(scene: Scene) -> Any:
    """The template of a run's pod."""
    return scene.api.one("CronJob", NAME)["spec"]["jobTemplate"]["spec"]["template"]


def settings_of(scene: Scene) -> dict[str, str]:
    """What Spark is told."""
    text = template_of(scene)["metadata"]["annotations"]["kavka.dev/spark-defaults"]
    return dict(line.split(" ", 1) for line in text.splitlines())


def run(name: str, start: str, end: str = "", why: str = "") -> Any:
    """A Job of the CronJob, as the API server shows it."""
    conditions = [{"type": end, "status": "True", "reason": why, "message": "it is over"}] if end else []
    done = {"completionTime": start.replace(":00Z", ":59Z")} if end == "Complete" else {}
    labels = {"kavka.dev/cluster": "main", "app.kubernetes.io/component": "audit"}
    return {
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "status": {"startTime": start, "conditions": conditions, **done},
    }


def test_the_key_is_drawn_once_and_pods_are_given_it_as_a_file() -> None:
    scene = scene_of(main(audit={}))
    secret = scene.api.one("Secret", "main-audit-key")
    key = secret["stringData"]["audit.key"]
    assert len(bytes.fromhex(key)) == 32
    assert secret["immutable"] is True
    assert "ownerReferences" not in secret["metadata"], "the trail that it has signed is on volumes, which stay"
    pod = scene.api.one("Pod", "main-nodes-0-0")
    assert "kavka.audit.key.file=/etc/kavka-audit/audit.key" in pod["metadata"]["annotations"]["kavka.dev/settings"]
    (volume,) = [volume for volume in pod["spec"]["volumes"] if "secret" in volume]
    assert volume["secret"]["secretName"] == "main-audit-key"
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        assert {"name": "kavka-audit-key", "mountPath": "/etc/kavka-audit"} in container["volumeMounts"]
    assert key not in json.dumps([found for (kind, _), found in scene.api.objects.items() if kind != "Secret"])
    for _ in range(3):
        scene.seconds += AN_HOUR
        scene.begin()
        scene.look()
    assert scene.api.one("Secret", "main-audit-key") == secret
    assert scene.api.writes.count("make Secret main-audit-key") == 1


def test_a_key_that_is_lost_is_drawn_again() -> None:
    scene = scene_of(main(audit={}))
    before = scene.api.objects.pop(("Secret", "main-audit-key"))
    scene.look()
    assert scene.api.names("Secret") == []
    scene.seconds += AN_HOUR
    scene.look()
    assert scene.api.one("Secret", "main-audit-key")["stringData"] != before["stringData"]


def test_a_cluster_without_a_trail_has_no_key_and_is_rendered_as_before() -> None:
    plain, off = scene_of(main()), scene_of(main(audit={"enabled": False}))
    for scene in (plain, off):
        assert scene.api.names("Secret") == []
        layout = scene.host.layouts[0]
        assert "audit" not in json.dumps(scene.api.one("Pod", "main-nodes-0-0"))
        assert (fingerprint(layout), mark_of(layout)) == (
            fingerprint(plain.host.layouts[0]),
            mark_of(plain.host.layouts[0]),
        )


def test_the_trail_is_turned_on_by_a_roll_that_names_it() -> None:
    scene = scene_of(main())
    scene.wanted = main(audit={})
    view = scene.look()
    assert view.seen[0].changed == ("kavka.audit.key.file",)
    assert not view.seen[0].is_as_asked


def test_a_key_that_cannot_be_made_is_told_before_anything_is_started() -> None:
    scene = Scene(main(audit={}))
    scene.look()  # what the cluster has once is there now
    del scene.api.objects["Secret", "main-audit-key"]
    scene.begin()
    scene.api.refuse = ApiError("may not", 403)
    assert scene.look().refusal == 'Secret "main-audit-key" cannot be made: may not'


def test_duckdb_is_one_pod_without_a_right() -> None:
    scene = scene_of(asked())
    spec = template_of(scene)["spec"]
    (container,) = spec["containers"]
    hosts = ",".join(f"main-nodes-{number}-0.main-nodes.default.svc:9092" for number in range(3))
    which = [
        "--bootstrap",
        hosts,
        "--cluster",
        "main",
        "--namespace",
        "default",
        "--cluster-id",
        ANSWERED["cluster_id"],
    ]
    assert container["args"] == ["kavka", "audit", "run", *which, "--directory", "/data/audit", *AS_PARQUET]
    assert container["image"] == "kavka/audit:1"
    assert container["resources"] == {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    assert [scene.api.names(kind) for kind in MADE_FOR_SPARK] == [[], [], []]
    labels = template_of(scene)["metadata"]["labels"]
    assert labels == {"kavka.dev/audit-of": "main"}, "the Services of nodes must not lead to it"
    claim = scene.api.one("PersistentVolumeClaim", NAME)
    assert "ownerReferences" not in claim["metadata"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "10Gi"


def test_roles_are_asked_for_where_spark_runs_alone() -> None:
    scene = scene_of(asked())
    scene.api.not_listed = set(MADE_FOR_SPARK)
    for engine, state in (("DuckDB", "Waiting"), ("Spark", "Refused")):
        scene.wanted = asked(engine=engine)
        scene.seconds += AN_HOUR
        analytics = scene.look().analytics
        assert analytics is not None
        assert (analytics.state, "is forbidden" in (analytics.message or "")) == (state, state == "Refused")


def test_no_run_is_due_before_the_cluster_has_answered_once() -> None:
    scene = Scene(main(audit={"analytics": {"schedule": "0 * * * *", "storage": VOLUME}}))
    scene.start()
    assert scene.api.names("CronJob") == []
    scene.wanted = asked()
    scene.look()
    assert scene.api.names("CronJob") == [NAME]
    scene.wanted = main(audit={"analytics": {"schedule": "5 * * * *", "storage": VOLUME}})
    scene.look()
    assert scene.api.one("CronJob", NAME)["spec"]["schedule"] == "5 * * * *", "what is there is kept as it is wanted"


def test_a_driver_may_do_with_pods_what_spark_does_and_nothing_else() -> None:
    scene = scene_of(asked(engine="Spark", executors={"instances": 2}))
    cron = scene.api.one("CronJob", NAME)
    for kind in (*MADE_FOR_SPARK, "NetworkPolicy"):
        (owner,) = scene.api.one(kind, NAME)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("CronJob", cron["metadata"]["uid"])
    verbs = ["create", "delete", "deletecollection", "get", "list", "watch"]
    assert scene.api.one("Role", NAME)["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]
    spec = template_of(scene)["spec"]
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == (NAME, True)
    assert spec["containers"][0]["args"][-2:] == ["--engine", "spark"]
    executor = json.loads(template_of(scene)["metadata"]["annotations"]["kavka.dev/spark-executor"])
    assert executor["spec"]["automountServiceAccountToken"] is False
    assert executor["metadata"]["labels"] == {"kavka.dev/audit-of": "main"}
    (term,) = executor["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname", "the volume is on one machine"
    assert settings_of(scene)["spark.executor.instances"] == "2"
    # Otherwise Spark mounts a directory of its own at the same place, and no API server takes the pod.
    (mount,) = executor["spec"]["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == settings_of(scene)["spark.local.dir"]
    assert mount["name"].startswith("spark-local-dir-")


@pytest.mark.parametrize("engine", ["DuckDB", "Spark"])
def test_at_rest_nothing_is_written(engine: str) -> None:
    scene = scene_of(asked(engine=engine, pod={"nodeSelector": {"disk": "fast"}}))
    before = len(scene.api.writes)
    for _ in range(3):
        scene.seconds += AN_HOUR
        scene.look()
    scene.begin()
    scene.look()
    assert len(scene.api.writes) == before


def test_a_hand_that_changes_the_schedule_is_put_right() -> None:
    scene = scene_of(asked())
    cron = scene.api.one("CronJob", NAME)
    scene.api.place({**cron, "spec": {**cron["spec"], "schedule": "* * * * *"}})
    scene.seconds += AN_HOUR
    scene.look()
    assert scene.api.one("CronJob", NAME)["spec"]["schedule"] == "0 * * * *"


def test_analytics_that_are_taken_out_go_and_leave_their_volume() -> None:
    scene = scene_of(asked())
    scene.wanted = main(audit={})
    before = len(scene.api.writes)
    for _ in range(3):
        assert scene.look().analytics is None
    assert scene.api.writes[before:] == [f"delete CronJob {NAME}"]
    assert NAME in scene.api.names("PersistentVolumeClaim")


def test_another_engine_begins_with_another_cron_job() -> None:
    scene = scene_of(asked(engine="Spark"))
    scene.wanted = asked()
    before = len(scene.api.writes)
    scene.look()
    scene.look()
    assert scene.api.writes[before:] == [f"delete CronJob {NAME}", f"put CronJob {NAME}"]
    assert "kavka.dev/spark-defaults" not in template_of(scene)["metadata"].get("annotations", {})


def test_a_claim_grows_and_never_shrinks() -> None:
    scene = scene_of(asked())
    scene.wanted = asked({"volume": {"size": "20Gi"}})
    scene.look()
    assert scene.api.one("PersistentVolumeClaim", NAME)["spec"]["resources"]["requests"]["storage"] == "20Gi"
    scene.wanted = asked()
    scene.look()
    assert scene.api.one("PersistentVolumeClaim", NAME)["spec"]["resources"]["requests"]["storage"] == "20Gi"


def test_what_is_not_ours_is_left_alone_and_the_nodes_go_on() -> None:
    scene = Scene(asked())
    scene.api.place({"kind": "CronJob", "metadata": {"name": NAME, "namespace": "default"}, "spec": {}})
    view = scene.start()
    assert view.refusal is None
    assert {node.state for node in view.seen.values()} == {"Running"}
    assert view.analytics is not None
    assert view.analytics.state == "Refused"
    assert view.analytics.message == (
        f'CronJob "{NAME}" is there and is not of this KafkaCluster; delete it, or give the cluster another name'
    )
    assert scene.api.one("CronJob", NAME)["spec"] == {}


def test_analytics_without_an_image_are_refused_by_the_field() -> None:
    scene = Scene(asked())
    scene.audit_image = None
    scene.begin()
    view = scene.start()
    assert view.analytics is not None
    assert view.analytics.message is not None
    assert view.analytics.message.startswith("spec.audit.analytics.image: this operator has no image of its own")
    scene.wanted = asked(image="mine/audit:2")
    scene.look()
    assert template_of(scene)["spec"]["containers"][0]["image"] == "mine/audit:2"


def secured(wanted: KafkaCluster) -> KafkaCluster:
    """The cluster with listeners that speak TLS."""
    listeners = tuple(listener.replaced({"protocol": "SSL"}) for listener in wanted.spec.listeners)
    return wanted.replaced({"spec": wanted.spec.replaced({"listeners": listeners})})


@pytest.mark.parametrize("engine", ["DuckDB", "Spark"])
def test_runs_are_who_their_secret_says_and_trust_the_authority_of_the_cluster(engine: str) -> None:
    scene = Scene(secured(asked(engine=engine, userSecret={"name": "auditor"})))
    status = scene.host._analytics.keep(scene.wanted, "main:9092")
    assert status is not None
    assert status.state == "Waiting"
    spec = template_of(scene)["spec"]
    (container,) = spec["containers"]
    assert container["args"][3:5] == ["--command-config", "/etc/kavka/user/client.properties"]
    assert "--bootstrap" not in container["args"]
    assert {"name": "SSL_CERT_FILE", "value": "/etc/kavka/trusted/ca.crt"} in container["env"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")}
    assert mounts == {"user": "/etc/kavka/user", "trusted": "/etc/kavka/trusted"}
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    assert secrets == {"user": "auditor", "trusted": "main-ca"}


def test_a_bucket_is_written_to_by_way_of_a_copy_that_goes_with_the_pod() -> None:
    scene = scene_of(asked({"s3": BUCKET}))
    spec = template_of(scene)["spec"]
    (container,) = spec["containers"]
    place = ["--directory", "s3://audit", "--work-directory", "/data/audit"]
    assert container["args"][11:] == [*place, "--s3-region", "us-east-1", "--s3-addressing", "auto", *AS_PARQUET]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["data"] == {"name": "data", "emptyDir": {"sizeLimit": "10Gi"}}
    assert scene.api.names("PersistentVolumeClaim") == [f"data-main-nodes-{number}" for number in range(3)]
    keys = [variable["valueFrom"]["secretKeyRef"] for variable in container["env"] if "valueFrom" in variable]
    assert [variable["name"] for variable in container["env"] if "valueFrom" in variable] == [
        key["key"] for key in keys
    ]
    assert [key["key"] for key in keys] == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
    assert all(key["name"] == "store" and key["optional"] for key in keys), "a run without says what it lacks"


def test_a_store_of_ones_own_is_told_where_it_is_and_who_signs_for_it() -> None:
    store = {"s3": {**BUCKET, **OWN_STORE, "workSize": "50Gi", "caSecret": {"name": "authority", "key": "root.pem"}}}
    spec = template_of(scene_of(asked(store)))["spec"]
    (container,) = spec["containers"]
    place = ["--directory", "s3://audit/a/main", "--work-directory", "/data/audit"]
    where = ["--s3-endpoint", "https://s3.example.com", "--s3-region", "eu-1", "--s3-addressing", "path"]
    assert container["args"][11:] == [*place, *where, *AS_PARQUET]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["data"]["emptyDir"] == {"sizeLimit": "50Gi"}
    assert volumes["store"]["secret"] == {
        "secretName": "authority",
        "optional": True,
        "items": [{"key": "root.pem", "path": "ca.crt"}],
    }
    assert {"name": "store", "mountPath": "/etc/kavka/store", "readOnly": True} in container["volumeMounts"]
    assert {"name": "AWS_CA_BUNDLE", "value": "/etc/kavka/store/ca.crt"} in container["env"]


def test_executors_are_let_into_a_bucket_as_their_driver_is_and_share_no_volume() -> None:
    store = {"s3": {**BUCKET, **OWN_STORE, "caSecret": {"name": "authority", "key": "root.pem"}}}
    scene = scene_of(asked(store, engine="Spark"))
    template = template_of(scene)
    (driver,) = template["spec"]["containers"]
    assert driver["args"][-2:] == ["--engine", "spark"]
    executor = json.loads(template["metadata"]["annotations"]["kavka.dev/spark-executor"])["spec"]
    (container,) = executor["containers"]
    assert [variable["name"] for variable in container["env"]] == [*store_keys(), "AWS_CA_BUNDLE"]
    assert all(variable in driver["env"] for variable in container["env"])
    assert {"name": "SPARK_CONF_DIR", "value": spark.FILES} in driver["env"]
    mount = {"name": "store", "mountPath": "/etc/kavka/store", "readOnly": True}
    assert mount in container["volumeMounts"]
    assert mount in driver["volumeMounts"]
    (ours,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "store"]
    assert ours in executor["volumes"]
    assert "affinity" not in executor
    settings = settings_of(scene)
    assert not [name for name in settings if "persistentVolumeClaim.data" in name]
    assert not [name for name in settings if "s3" in name.lower() or "secret" in name.lower()]
    assert "main-audit" not in scene.api.names("PersistentVolumeClaim")
    assert scene.api.names("Role") == ["main-audit"]


def store_keys() -> list[str]:
    return ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]


@pytest.mark.parametrize("storage", [{"s3": BUCKET, **VOLUME}, {}])
def test_tables_have_one_place(storage: Any) -> None:
    with pytest.raises(InvalidError) as told:
        asked(storage)
    assert "storage: is one place; write either volume or s3" in str(told.value)


def test_what_an_address_may_be_is_one_rule_for_the_command_and_the_resource() -> None:
    shapes = {BUCKET_PATTERN: address.BUCKET, ENDPOINT_PATTERN: address.ENDPOINT}
    assert [f"^{rule.pattern}$" for rule in shapes.values()] == [*shapes]
    segment = address.SEGMENT.pattern
    assert f"^{segment}(/{segment})*$" == PREFIX_PATTERN


def test_a_user_of_an_open_cluster_trusts_whom_its_own_file_names() -> None:
    scene = scene_of(asked(userSecret={"name": "auditor"}))
    spec = template_of(scene)["spec"]
    assert [volume["name"] for volume in spec["volumes"] if "secret" in volume] == ["user"]
    assert "SSL_CERT_FILE" not in [variable["name"] for variable in spec["containers"][0]["env"]]


def test_the_status_follows_the_newest_run() -> None:
    scene = scene_of(asked())

    def told() -> dict[str, Any]:
        scene.seconds += AN_HOUR
        status = scene.look().analytics
        assert status is not None
        scene.wanted = asked().replaced({"status": scene.wanted.status.replaced({"analytics": status})})
        return status.to_dict()

    assert told() == {"state": "Waiting"}
    scene.api.place(run("first", "2026-11-25T10:00:00Z"))
    assert told() == {"state": "Running", "startTime": "2026-11-25T10:00:00Z"}
    scene.api.place(run("first", "2026-11-25T10:00:00Z", "Complete"))
    success = "2026-11-25T10:00:59Z"
    assert told() == {"state": "Succeeded", "startTime": "2026-11-25T10:00:00Z", "successTime": success}
    del scene.api.objects["Job", "first"]
    assert told() == {"state": "Succeeded", "startTime": "2026-11-25T10:00:00Z", "successTime": success}
    scene.api.place(run("second", "2026-11-25T11:00:00Z", "Failed", "BackoffLimitExceeded"))
    found = told()
    assert (found["state"], found["successTime"]) == ("Failed", success)
    assert found["message"] == "BackoffLimitExceeded: it is over"


def pod_that_ended(job: str, words: str, code: int = 1) -> dict[str, Any]:
    """The pod of a run that has ended with these words; it has failed, unless the code is 0."""
    ended = {"terminated": {"exitCode": code, "message": words}}
    return {
        "kind": "Pod",
        "metadata": {"name": f"{job}-x", "labels": {"batch.kubernetes.io/job-name": job}},
        "status": {"containerStatuses": [{"name": "audit", "state": ended}]},
    }


def test_a_run_that_failed_is_told_with_its_last_words() -> None:
    scene = scene_of(asked())
    scene.api.place(run("first", "2026-11-25T10:00:00Z", "Failed", "BackoffLimitExceeded"))
    words = "error: /data/audit cannot be written to: No space left on device\n"
    scene.api.objects["Pod", "first-x"] = pod_that_ended("first", words)
    scene.seconds += AN_HOUR
    status = scene.look().analytics
    assert status is not None
    assert status.message is not None
    assert status.message.endswith(
        "; ended with code 1: error: /data/audit cannot be written to: No space left on device"
    )


SUMMARY = {
    "time": "2026-11-25T10:00:59Z",
    "answers": [{"question": "What is missing?", "weight": "wrong", "rows": 2}],
    "chains": "3 chains verified until 2026-11-25 09:59",
}


def test_what_a_run_leaves_is_told_until_another_run_leaves_something() -> None:
    scene = scene_of(asked())
    (container,) = template_of(scene)["spec"]["containers"]
    assert {"name": "KAVKA_AUDIT_SUMMARY", "value": "/dev/termination-log"} in container["env"]

    def told() -> dict[str, Any] | None:
        scene.seconds += AN_HOUR
        status = scene.look().analytics
        assert status is not None
        scene.wanted = asked()
        scene.wanted = scene.wanted.replaced({"status": scene.wanted.status.replaced({"analytics": status})})
        return status.to_dict().get("summary")

    assert told() is None
    scene.api.place(run("first", "2026-11-25T10:00:00Z", "Complete"))
    scene.api.objects["Pod", "first-x"] = pod_that_ended("first", json.dumps(SUMMARY | {"later": 1}), 0)
    assert told() == SUMMARY, "a field of a later version is left out"
    scene.api.place(run("second", "2026-11-25T11:00:00Z", "Failed", "BackoffLimitExceeded"))
    scene.api.objects["Pod", "second-x"] = pod_that_ended("second", json.dumps(SUMMARY | {"chains": "none"}))
    assert told() == SUMMARY, "it is of the first, and says when that was"


@pytest.mark.parametrize("left", ["", "3 records", "[]", json.dumps(SUMMARY | {"answers": [{"weight": "odd"}]})])
def test_what_is_no_summary_is_left_alone(left: str) -> None:
    scene = scene_of(asked())
    scene.api.place(run("first", "2026-11-25T10:00:00Z", "Complete"))
    scene.api.objects["Pod", "first-x"] = pod_that_ended("first", left, 0)
    scene.seconds += AN_HOUR
    status = scene.look().analytics
    assert status is not None
    assert (status.state, status.summary) == ("Succeeded", None)


def test_a_run_without_the_file_of_its_user_is_told_with_the_field_and_the_secret() -> None:
    scene = scene_of(asked(userSecret={"name": "auditor"}))
    (volume,) = (volume for volume in template_of(scene)["spec"]["volumes"] if volume["name"] == "user")
    assert volume["secret"]["optional"] is True, "its pod starts, and can say what is lacking"
    scene.api.place(run("first", "2026-11-25T10:00:00Z", "Failed", "BackoffLimitExceeded"))
    words = "error: --command-config: /etc/kavka/user/client.properties cannot be read: No such file or directory"
    scene.api.objects["Pod", "first-x"] = pod_that_ended("first", words)
    scene.seconds += AN_HOUR
    status = scene.look().analytics
    assert status is not None
    assert status.message is not None
    told = 'spec.audit.analytics.userSecret: Secret "auditor" has no client.properties that lets runs in: '
    assert status.message.endswith(f"{told}ended with code 1: {words}")


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("error: s3://audit: writing lease.json: there is no bucket audit at AWS; make it", "bucket"),
        ("error: s3://audit: there are no credentials; set AWS_ACCESS_KEY_ID", 'credentialsSecret: Secret "store"'),
        (
            "error: s3://audit: reading lake.json: AWS refuses it; give the credentials the right s3:GetObject",
            'credentialsSecret: Secret "store"',
        ),
        ("error: s3://audit: opening: the bucket audit is in another region; name it in --s3-region", "region"),
        ("error: s3://audit: opening: it does not answer; put right --s3-endpoint or try later", "endpoint"),
        ("error: AWS_CA_BUNDLE: /etc/kavka/store/ca.crt cannot be read", 'caSecret: Secret "authority"'),
        ("error: s3://audit: the certificate is not trusted; name it in AWS_CA_BUNDLE", 'caSecret: Secret "authority"'),
        ("error: --command-config: Kafka refuses the credentials", ""),
        ("error: s3://audit: another run holds it; wait for its end", ""),
    ],
)
def test_a_run_that_its_store_refuses_is_told_with_the_field(words: str, field: str) -> None:
    scene = scene_of(asked({"s3": {**BUCKET, "caSecret": {"name": "authority"}}}))
    scene.api.place(run("first", "2026-11-25T10:00:00Z", "Failed", "BackoffLimitExceeded"))
    scene.api.objects["Pod", "first-x"] = pod_that_ended("first", words)
    scene.seconds += AN_HOUR
    status = scene.look().analytics
    assert status is not None
    assert status.message is not None
    told = f"spec.audit.analytics.storage.s3.{field}: " if field else ""
    assert status.message.endswith(f"; {told}ended with code 1: {words}")


def test_a_run_whose_copy_outgrows_its_volume_is_told_with_the_field() -> None:
    scene = scene_of(asked({"s3": BUCKET}))
    scene.api.place(run("first", "2026-11-25T10:00:00Z", "Failed", "BackoffLimitExceeded"))
    pod = pod_that_ended("first", "")
    pod["status"] |= {"phase": "Failed", "reason": "Evicted"}
    pod["status"]["message"] = 'Usage of EmptyDir volume "data" exceeds the limit "10Gi". '
    scene.api.objects["Pod", "first-x"] = pod
    scene.seconds += AN_HOUR
    status = scene.look().analytics
    assert status is not None
    assert status.message is not None
    told = 'spec.audit.analytics.storage.s3.workSize: Evicted: Usage of EmptyDir volume "data" exceeds the limit "10Gi"'
    assert told in status.message


@pytest.mark.parametrize(
    ("memory", "heap", "overhead"),
    [("1Gi", "640m", "384m"), ("2Gi", "1536m", "512m"), ("8Gi", "6144m", "2048m")],
)
def test_a_pod_has_room_for_the_heap_and_for_what_is_beside_it(memory: str, heap: str, overhead: str) -> None:
    executors = {"resources": {"memory": memory, "cpu": "2500m"}}
    settings = settings_of(scene_of(asked(engine="Spark", executors=executors)))
    assert (settings["spark.executor.memory"], settings["spark.executor.memoryOverhead"]) == (heap, overhead)
    assert (settings["spark.executor.cores"], settings["spark.kubernetes.executor.request.cores"]) == ("2", "2500m")


def test_settings_of_spark_stand_beside_those_that_follow_from_fields() -> None:
    more = {"spark.eventLog.enabled": "true", "spark.ui.enabled": "true", "spark.x": r"a\b = #c"}
    odd = {"spark.y\nspark.master": "local", "spark.z=1": ""}
    plain = settings_of(scene_of(asked(engine="Spark")))
    settings = settings_of(scene_of(asked(engine="Spark", sparkConf=more | odd)))
    as_properties = {"spark.x": r"a\\b = #c", r"spark.y\u000aspark.master": "local", r"spark.z\u003d1": ""}
    assert settings == plain | more | as_properties, "none is another setting to Java"


@pytest.mark.parametrize("name", ["spark.master", "spark.kubernetes.namespace", "spark.executor.memory", "sparks", ""])
def test_a_setting_of_spark_that_follows_from_a_field_is_refused(name: str) -> None:
    with pytest.raises(InvalidError, match=r"sparkConf: has a name that is none of Spark's, or a setting that follows"):
        asked(engine="Spark", sparkConf={name: "1"})


@pytest.mark.parametrize("storage", [VOLUME, {"s3": {"bucket": "audit", "credentialsSecret": {"name": "store"}}}])
def test_a_run_keeps_the_trail_in_the_tables_that_are_asked_for(storage: Any) -> None:
    def words(**fields: Any) -> list[str]:
        return [*template_of(scene_of(asked(storage, **fields)))["spec"]["containers"][0]["args"]]

    assert words(tableFormat="Delta")[-2:] == ["--table-format", "delta"]
    assert words(tableFormat="Parquet") == words() == [*words(tableFormat="Delta")[:-1], "parquet"]


def test_settings_of_spark_that_follow_from_fields_are_all_known() -> None:
    free = {"spark.ui.enabled", "spark.ui.showConsoleProgress"}
    set_by_us = {name for name in settings_of(scene_of(asked(engine="Spark"))) if not name.startswith(SPARK_OWN_PREFIX)}
    at_start = set(re.findall(r"--conf (spark\.[A-Za-z.]+)=", spark.SUBMITTED))
    at_start = {name for name in at_start if not name.startswith(SPARK_OWN_PREFIX)}
    assert (set_by_us | at_start) - free == set(SPARK_OWN)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sparkConf": {"spark.x": "1"}}, "sparkConf: is Spark's alone; write engine: Spark, or take sparkConf out"),
        ({"engine": "Spark", "sparkConf": {"spark.x": "1\nspark.master local"}}, "sparkConf.spark.x: "),
        ({"engine": "Spark", "tableFormat": "Delta"}, "tableFormat: Delta is DuckDB's alone where executors are pods"),
    ],
)
def test_settings_of_spark_are_refused_where_they_would_do_something_else(fields: Any, words: str) -> None:
    with pytest.raises(InvalidError) as told:
        asked(**fields)
    assert words in str(told.value)


@pytest.mark.parametrize(("written", "spelled"), [("1", "1"), ("0.5", "500m"), ("1000m", "1"), ("2.25", "2250m")])
def test_processors_are_spelled_as_the_api_server_does(written: str, spelled: str) -> None:
    assert spark.cpu(Size(cpu=written)) == spelled
