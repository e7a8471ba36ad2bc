"""What Spark is told of a run: its settings, and the template of its executors. Pure.

The pod of the run is the driver, which asks the API server for executors and is their owner. What it does not ask for
it needs no right for: no ConfigMap, no Service and no claim of Spark's own. Both texts travel in annotations of the
driver's pod; the two settings that are known when it starts are its address and its name.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from kavka_operator.api.audit import Analytics, Executors, Size
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.platform.kubernetes.objects import s3_access
from kavka_operator.platform.kubernetes.objects.names import AUDIT_OF, Document, audit_name
from kavka_operator.platform.kubernetes.objects.pod_template import RIGHTS, SCRATCH, USER

DATA = "/data"
NAME_END = re.compile(r"[\s\\:=#!\x00-\x1f]")
"""Characters in a name that mean something else in a file of Java's properties, unless they are escaped."""
FILES = "/etc/kavka-spark"
DEFAULTS, EXECUTOR = "spark-defaults.conf", "executor.yaml"
OVERHEAD_BYTES_MIN = 384 << 20
MEBI = 20
CLAIM = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data"
DRIVER_PORT, BLOCKS_PORT = "7078", "7079"
LOCAL_VOLUME = "spark-local-dir-1"
"""By this name Spark knows that its own directory is there; otherwise it mounts another one at the same place."""
SUBMITTED = (
    "--conf spark.driver.host=$(POD_IP) --conf spark.driver.bindAddress=$(POD_IP)"
    " --conf spark.kubernetes.driver.pod.name=$(POD_NAME) pyspark-shell"
)
"""Arguments of the driver, into which Kubernetes fills the address and the name of its pod."""


def defaults(cluster: KafkaCluster, analytics: Analytics, image: str) -> str:
    """The text of spark-defaults.conf."""
    executors = analytics.executors or Executors()
    settings = {
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.kubernetes.namespace": cluster.metadata.namespace,
        "spark.kubernetes.container.image": image,
        "spark.kubernetes.executor.podTemplateFile": f"{FILES}/{EXECUTOR}",
        "spark.driver.memory": _heap(analytics.resources),
        "spark.driver.port": DRIVER_PORT,
        "spark.blockManager.port": BLOCKS_PORT,
        "spark.executor.instances": str(executors.instances),
        "spark.executor.cores": str(max(1, millis(executors.resources) // 1000)),
        "spark.kubernetes.executor.request.cores": cpu(executors.resources),
        "spark.executor.memory": _heap(executors.resources),
        "spark.executor.memoryOverhead": f"{_overhead(executors.resources) >> MEBI}m",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.local.dir": SCRATCH,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **analytics.spark_conf,
        **_shared(cluster, analytics),
    }
    lines = (f"{NAME_END.sub(_escaped, name)} {_as_value(value)}\n" for name, value in sorted(settings.items()))
    return "".join(lines)


def _as_value(value: str) -> str:
    """A value as it stands in a file that Spark reads as Java's properties."""
    return value.replace("\\", "\\\\")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _shared(cluster: KafkaCluster, analytics: Analytics) -> dict[str, str]:
    """The volume that executors share with their driver; a store they reach as it does."""
    if analytics.storage.volume is None:
        return {}
    return {f"{CLAIM}.mount.path": DATA, f"{CLAIM}.options.claimName": audit_name(cluster.name)}


def executor(cluster: KafkaCluster, analytics: Analytics) -> str:
    """The template of executors, as a file. They ask the API server for nothing, and so have no token."""
    pod, kept = analytics.pod, analytics.storage.s3
    asked, own = pod.spec(), s3_access.let_in(kept)
    affinity = {**_beside(cluster, analytics), **asked.get("affinity", {})}
    spec = {
        **asked,
        **({"affinity": affinity} if affinity else {}),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": security_context(),
        "containers": [
            {
                "name": "executor",
                "securityContext": RIGHTS,
                **({"env": own} if own else {}),
                "volumeMounts": [{"name": LOCAL_VOLUME, "mountPath": SCRATCH}, *s3_access.mounts(kept)],
            }
        ],
        "volumes": [{"name": LOCAL_VOLUME, "emptyDir": {}}, *s3_access.volumes(kept)],
    }
    metadata = {"labels": {**pod.labels, AUDIT_OF: cluster.name}}
    metadata |= {"annotations": pod.annotations} if pod.annotations else {}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return json.dumps(document, sort_keys=True, indent=1) + "\n"


def _beside(cluster: KafkaCluster, analytics: Analytics) -> dict[str, Any]:
    """The affinity that keeps executors on the machine of their driver, where a volume is there and nowhere else."""
    volume = analytics.storage.volume
    if volume is None or volume.access_mode != "ReadWriteOnce":
        return {}
    term = {"labelSelector": {"matchLabels": {AUDIT_OF: cluster.name}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def environment() -> list[Document]:
    """The environment of the driver beside that of any run."""
    fields = {"POD_IP": "status.podIP", "POD_NAME": "metadata.name"}
    own: list[Document] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()
    ]
    return [*own, {"name": "PYSPARK_SUBMIT_ARGS", "value": SUBMITTED}, {"name": "SPARK_CONF_DIR", "value": FILES}]


def security_context() -> Mapping[str, Any]:
    """The rights of a pod of a run."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def cpu(size: Size) -> str:
    """The processors of a pod, as an API server spells them."""
    found = millis(size)
    return f"{found}m" if found % 1000 else str(found // 1000)


def millis(size: Size) -> int:
    """The processors of a pod, in thousandths."""
    return int(size.cpu[:-1]) if size.cpu.endswith("m") else round(float(size.cpu) * 1000)


def _overhead(size: Size) -> int:
    """The bytes of a pod that are left to what is not on Java's heap: Java itself, Python, files."""
    return max(OVERHEAD_BYTES_MIN, size.memory // 4)


def _heap(size: Size) -> str:
    return f"{(size.memory - _overhead(size)) >> MEBI}m"
