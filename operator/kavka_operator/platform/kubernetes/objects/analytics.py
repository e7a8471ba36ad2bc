"""The objects by which the audit trail of a cluster is asked by a schedule, and what they say of the runs. Pure.

A CronJob makes the pod of each run; all else of Spark belongs to the CronJob and goes with it, so that the operator
need not delete it. The claim belongs to nobody: what was answered stays. The pods have no label of a cluster's nodes,
whose Services would otherwise lead to them.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kavka_operator.api.audit import (
    MESSAGE_LENGTH_MAX,
    Analytics,
    AnalyticsStatus,
    AuditS3,
    AuditSummary,
    AuditVolume,
)
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.quantity import spell
from kavka_operator.api.stored_resources import part
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.platform.certificates.maintenance import TRUSTED, Place
from kavka_operator.platform.kubernetes.objects import s3_access, spark
from kavka_operator.platform.kubernetes.objects.containers import last_words
from kavka_operator.platform.kubernetes.objects.manifests import owned
from kavka_operator.platform.kubernetes.objects.names import (
    AUDIT_OF,
    CLUSTER,
    COMPONENT,
    ENGINE,
    MANAGED_BY,
    OPERATOR,
    Document,
    audit_name,
    label,
    labels_of,
    name_of,
    place_secret,
    uid_of,
)
from kavka_operator.platform.kubernetes.objects.pod_template import RIGHTS, SCRATCH, SCRATCH_VOLUME, secret_volume

COMPONENT_NAME = "audit"
CONTAINER = "audit"
SPARK_DEFAULTS, EXECUTOR_TEMPLATE = "kavka.dev/spark-defaults", "kavka.dev/spark-executor"
FILES_VOLUME, DATA_VOLUME = "kavka-spark", "data"
USER_VOLUME, TRUSTED_VOLUME = "user", "trusted"
USER_FILES, TRUSTED_FILES = "/etc/kavka/user", "/etc/kavka/trusted"
CLIENT_PROPERTIES = "client.properties"
STORE_FIELDS = (
    (s3_access.TRUSTED, "caSecret"),
    ("credentials", "credentialsSecret"),
    ("there is no bucket", "bucket"),
    ("--s3-region", "region"),
    ("--s3-endpoint", "endpoint"),
)
"""What a run says of a store that it cannot use, and the field that is to be put right."""
EVICTED = "Evicted"
SUMMARY_FILE, TERMINATION_LOG = "KAVKA_AUDIT_SUMMARY", "/dev/termination-log"
"""Where a run leaves its summary: the kubelet makes a message of that file when the container ends."""
COMMAND_CONFIG = "--command-config"
POD_VERBS = ("create", "delete", "deletecollection", "get", "list", "watch")
"""What a driver does with the pods of its executors."""
HISTORY = 3
RBAC = "rbac.authorization.k8s.io"


def labels(cluster: KafkaCluster) -> dict[str, str]:
    """The labels of the objects."""
    return {**labels_of(cluster.name), COMPONENT: COMPONENT_NAME}


def selector(cluster: str) -> dict[str, str]:
    """The labels by which the objects are found again."""
    return {CLUSTER: cluster, COMPONENT: COMPONENT_NAME}


def is_ours(document: Mapping[str, Any], cluster: KafkaCluster) -> bool:
    """Whether an object is one by which the trail of this cluster is asked."""
    wanted = {**selector(cluster.name), MANAGED_BY: OPERATOR}
    return all(label(document, name) == value for name, value in wanted.items())


def claim(cluster: KafkaCluster, volume: AuditVolume) -> Document:
    """The claim of the tables, which belongs to nobody."""
    asked = {"storageClassName": volume.storage_class_name} if volume.storage_class_name else {}
    name = audit_name(cluster.name)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": cluster.metadata.namespace, "labels": labels(cluster)},
        "spec": {
            "accessModes": [volume.access_mode],
            "resources": {"requests": {"storage": spell(volume.size)}},
            **asked,
        },
    }


def cron_job(cluster: KafkaCluster, analytics: Analytics, image: str, bootstrap: str) -> Document:
    """The CronJob that runs the analytics. `bootstrap` are addresses of the cluster's brokers."""
    marks = labels(cluster)
    job = {
        "backoffLimit": 0,  # the next run takes in what this one has left
        "activeDeadlineSeconds": analytics.time_limit_seconds,
        "template": _pod(cluster, analytics, image, bootstrap),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            **owned(cluster, audit_name(cluster.name)),
            "labels": {**marks, ENGINE: analytics.engine},
        },
        "spec": {
            "schedule": analytics.schedule,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": analytics.time_limit_seconds,
            "successfulJobsHistoryLimit": HISTORY,
            "failedJobsHistoryLimit": HISTORY,
            "jobTemplate": {"metadata": {"labels": marks}, "spec": job},
        },
    }


def _pod(cluster: KafkaCluster, analytics: Analytics, image: str, bootstrap: str) -> Document:
    pod, is_spark = analytics.pod, analytics.engine == "Spark"
    files = (
        {
            SPARK_DEFAULTS: spark.defaults(cluster, analytics, image),
            EXECUTOR_TEMPLATE: spark.executor(cluster, analytics),
        }
        if is_spark
        else {}
    )
    annotations = {**pod.annotations, **files}
    account = {"serviceAccountName": audit_name(cluster.name)} if is_spark else {}
    return {
        "metadata": {
            "labels": {**pod.labels, AUDIT_OF: cluster.name},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            **pod.spec(),
            **account,
            "automountServiceAccountToken": is_spark,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "securityContext": spark.security_context(),
            "containers": [_container(cluster, analytics, image, bootstrap)],
            "volumes": _volumes(cluster, analytics),
        },
    }


def _container(cluster: KafkaCluster, analytics: Analytics, image: str, bootstrap: str) -> Document:
    size, is_spark = analytics.resources, analytics.engine == "Spark"
    memory = spell(size.memory)
    mounts: list[Document] = [
        {"name": SCRATCH_VOLUME, "mountPath": SCRATCH},
        {"name": DATA_VOLUME, "mountPath": spark.DATA},
    ]
    mounts += [{"name": FILES_VOLUME, "mountPath": spark.FILES}] if is_spark else []
    mounts += [{"name": USER_VOLUME, "mountPath": USER_FILES, "readOnly": True}] if analytics.user_secret else []
    own = spark.environment() if is_spark else []
    own += s3_access.let_in(analytics.storage.s3)
    mounts += s3_access.mounts(analytics.storage.s3)
    if _trusts_authority(cluster, analytics):
        mounts.append({"name": TRUSTED_VOLUME, "mountPath": TRUSTED_FILES, "readOnly": True})
        own = [*own, {"name": "SSL_CERT_FILE", "value": f"{TRUSTED_FILES}/{TRUSTED}"}]
    return {
        "name": CONTAINER,
        "image": image,
        "args": [*command(cluster, analytics, bootstrap)],
        "env": [{"name": "HOME", "value": SCRATCH}, {"name": SUMMARY_FILE, "value": TERMINATION_LOG}, *own],
        "resources": {"requests": {"cpu": spark.cpu(size), "memory": memory}, "limits": {"memory": memory}},
        "securityContext": RIGHTS,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def command(cluster: KafkaCluster, analytics: Analytics, bootstrap: str) -> tuple[str, ...]:
    """The command of a run: as a user, whose file says where to begin, or as anybody."""
    user = (COMMAND_CONFIG, f"{USER_FILES}/{CLIENT_PROPERTIES}")
    begin = user if analytics.user_secret is not None else ("--bootstrap", bootstrap)
    which = ("--cluster", cluster.name, "--namespace", cluster.metadata.namespace)
    known = ("--cluster-id", cluster.status.cluster_id) if cluster.status.cluster_id else ()
    engine = ("--engine", "spark") if analytics.engine == "Spark" else ()
    table_format = ("--table-format", analytics.table_format.lower())
    return ("kavka", "audit", "run", *begin, *which, *known, *_place(analytics.storage.s3), *table_format, *engine)


def _place(kept: AuditS3 | None) -> tuple[str, ...]:
    """The options that say where the tables go."""
    if kept is None:
        return ("--directory", f"{spark.DATA}/audit")
    address = "/".join(part for part in (kept.bucket, kept.prefix) if part)
    endpoint = ("--s3-endpoint", kept.endpoint) if kept.endpoint else ()
    shape = ("--s3-region", kept.region, "--s3-addressing", kept.addressing.lower())
    return ("--directory", f"s3://{address}", "--work-directory", f"{spark.DATA}/audit", *endpoint, *shape)


def _trusts_authority(cluster: KafkaCluster, analytics: Analytics) -> bool:
    """Whether runs are told of the cluster's own authority: a listener has a certificate of it, or of an authority that
    the user's file names.
    """
    return analytics.user_secret is not None and cluster.spec.is_secured


def _tables(cluster: KafkaCluster, kept: AuditS3 | None) -> Document:
    """The volume that runs write to: the claim, or what goes with the pod and is a copy of a bucket."""
    if kept is not None:
        return {"name": DATA_VOLUME, "emptyDir": {"sizeLimit": spell(kept.work_size)}}
    return {"name": DATA_VOLUME, "persistentVolumeClaim": {"claimName": audit_name(cluster.name)}}


def _volumes(cluster: KafkaCluster, analytics: Analytics) -> list[Document]:
    kept = analytics.storage.s3
    found = [{"name": SCRATCH_VOLUME, "emptyDir": {}}, _tables(cluster, kept), *s3_access.volumes(kept)]
    if analytics.engine == "Spark":
        files = {spark.DEFAULTS: SPARK_DEFAULTS, spark.EXECUTOR: EXECUTOR_TEMPLATE}
        items = [
            {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}} for path, key in files.items()
        ]
        found.append({"name": FILES_VOLUME, "downwardAPI": {"items": items}})
    if analytics.user_secret is not None:
        # A pod that waits for a Secret says nothing of it in its status; a run without its file says what it lacks.
        found.append(secret_volume(USER_VOLUME, analytics.user_secret.name, optional=True))
    if _trusts_authority(cluster, analytics):
        found.append(secret_volume(TRUSTED_VOLUME, place_secret(cluster.name, Place.CA)))
    return found


def of_spark(cluster: KafkaCluster, cron: Mapping[str, Any]) -> list[Document]:
    """The objects that a driver needs beside its pod: rights on pods of its namespace, and a fence around them."""
    name, namespace = audit_name(cluster.name), cluster.metadata.namespace
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    pods = {"matchLabels": {AUDIT_OF: cluster.name}}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": _with(cluster, cron),
            "automountServiceAccountToken": False,
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": _with(cluster, cron),
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [*POD_VERBS]}],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _with(cluster, cron),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [account],
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": _with(cluster, cron),
            "spec": {
                "podSelector": pods,
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": pods}]}],
            },
        },
    ]


def _with(cluster: KafkaCluster, cron: Mapping[str, Any]) -> Document:
    """The metadata of an object that goes with the CronJob."""
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": name_of(cron),
        "uid": uid_of(cron),
        "controller": True,
        "blockOwnerDeletion": False,
    }
    name = audit_name(cluster.name)
    return {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": labels(cluster),
        "ownerReferences": [owner],
    }


def newest(jobs: Sequence[Document]) -> Document | None:
    """The run that began last."""
    return max(jobs, key=_began, default=None)


def _began(job: Mapping[str, Any]) -> str:
    return str(part(job, "status").get("startTime") or part(job, "metadata").get("creationTimestamp") or "")


def ended(job: Mapping[str, Any]) -> tuple[str, str]:
    """The end of a run, Complete or Failed, and why; empty while it runs."""
    for condition in part(job, "status").get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in {"Complete", "Failed"}:
            return str(condition["type"]), f"{condition.get('reason') or ''}: {condition.get('message') or ''}"
    return "", ""


def status_of(
    before: AnalyticsStatus | None,
    cron: Mapping[str, Any],
    jobs: Sequence[Document],
    words: str = "",
    summary: AuditSummary | None = None,
) -> AnalyticsStatus:
    """The status of the analytics. `words` are the last of a run that has failed, and `summary` is of one that has
    succeeded, where they are known.
    """
    told = _run_status(before, cron, jobs, words)
    return told.replaced({"summary": summary or _summary_before(before)})


def summary_of(pods: Sequence[Mapping[str, Any]]) -> AuditSummary | None:
    """The last message of a run that has succeeded; None where that is nothing that can be read."""
    for end in (part(part(container, "state"), "terminated") for pod in pods for container in _containers(pod)):
        if end.get("exitCode") == 0:
            with suppress(ValueError, InvalidError):
                return AuditSummary.decode(json.loads(str(end.get("message") or "")), is_strict=False)
    return None


def _summary_before(before: AnalyticsStatus | None) -> AuditSummary | None:
    return before.summary if before is not None else None


def _run_status(
    before: AnalyticsStatus | None, cron: Mapping[str, Any], jobs: Sequence[Document], words: str
) -> AnalyticsStatus:
    told = [str(part(job, "status").get("completionTime") or "") for job in jobs if ended(job)[0] == "Complete"]
    successes = [*told, str(part(cron, "status").get("lastSuccessfulTime") or "")]
    if before is not None and before.success_time is not None:
        successes.append(str(before.to_dict()["successTime"]))
    success = max(successes) or None
    run = newest(jobs)
    if run is None:
        start = before.start_time if before is not None else None
        state = "Succeeded" if success else "Waiting"
        return AnalyticsStatus(state=state, start_time=start, success_time=success)  # type: ignore[arg-type]
    end, why = ended(run)
    states = {"": "Running", "Complete": "Succeeded", "Failed": "Failed"}
    message = "; ".join(text for text in (why, words) if text)[:MESSAGE_LENGTH_MAX] if end == "Failed" else None
    return AnalyticsStatus(
        state=states[end],  # type: ignore[arg-type]
        start_time=_began(run) or None,  # type: ignore[arg-type]
        success_time=success,  # type: ignore[arg-type]
        message=message,
    )


def refused(before: AnalyticsStatus | None, words: str) -> AnalyticsStatus:
    """The status of analytics that cannot be run as they are wanted."""
    start, success = (before.start_time, before.success_time) if before is not None else (None, None)
    message, summary = " ".join(words.split())[:MESSAGE_LENGTH_MAX], _summary_before(before)
    return AnalyticsStatus(state="Refused", start_time=start, success_time=success, message=message, summary=summary)


def with_field(analytics: Analytics, words: str) -> str:
    """Words of a run that has failed; where they are about its user's file or its store, after the field and the
    Secret.
    """
    if analytics.user_secret is not None and COMMAND_CONFIG in words:
        secret = f'Secret "{analytics.user_secret.name}"'
        return f"spec.audit.analytics.userSecret: {secret} has no {CLIENT_PROPERTIES} that lets runs in: {words}"
    kept = analytics.storage.s3
    field = _of_store(kept, words) if kept is not None else ""
    return f"spec.audit.analytics.storage.s3.{field}: {words}" if field else words


def _of_store(kept: AuditS3, words: str) -> str:
    """The field of a store that words of a run are about, with its Secret; empty where they are about none."""
    if f'volume "{DATA_VOLUME}" exceeds' in words:
        return "workSize"
    is_about = f"s3://{kept.bucket}" in words or s3_access.TRUSTED in words
    field = next((field for mark, field in STORE_FIELDS if is_about and mark in words), "")
    secrets = {"caSecret": kept.ca_secret, "credentialsSecret": kept.credentials_secret}
    secret = secrets.get(field)
    return field if secret is None else f'{field}: Secret "{secret.name}"'


def words_of(pods: Sequence[Mapping[str, Any]]) -> str:
    """The last words of the pods of a run; of one that was sent off its machine, why."""
    statuses = [part(pod, "status") for pod in pods]
    sent_off = [f"{EVICTED}: {status.get('message') or ''}" for status in statuses if status.get("reason") == EVICTED]
    found = [last_words(container) for pod in pods for container in _containers(pod)]
    return next((words for words in (*sent_off, *found) if words), "")


def _containers(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The states of a pod's containers."""
    return part(pod, "status").get("containerStatuses") or ()
