"""The pod of a node: a template that holds all that the node was started with.

The settings travel in an annotation of the pod, which the downward API mounts as a file: no object beside the pod can
change under it, and a pod that is evicted comes back with what it had. What a volume is formatted with stands in the
arguments of the first container: its ids were drawn before, so the same template always formats the same. Volumes that
end with the pod are given no id: each pod draws another, by which the controller knows that the disk is new. Such a pod
has a scheduling gate, as nobody but the operator knows whether it may begin empty.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kavka_operator.api.quantity import spell
from kavka_operator.platform.kubernetes.objects.names import (
    ASKED,
    AUDIT_KEY,
    BESIDES_RESOURCES,
    CLUSTER,
    FINGERPRINT,
    GATE,
    SETTINGS,
    Document,
    audit_key_name,
    certificates_secret,
    claim_name,
    node_labels,
    node_name,
)
from kavka_operator.platform.kubernetes.objects.settings import (
    ADVERTISED,
    AUDIT_DIRECTORY,
    CERTIFICATES,
    HOST_IP,
    Layout,
    advertised,
    besides_resources,
    controller_port,
    directory,
    fingerprint,
    properties,
)
from kavka_operator.platform.kubernetes.objects.spec_hash import mark_of
from kavka_operator.reconcile.rollout.restart import RESTART, restart_mark

USER = 10001  # as in the Dockerfile
START_SECONDS_MAX = 1800
CONFIG_DIRECTORY = "/etc/kavka"
CONFIG = f"{CONFIG_DIRECTORY}/server.properties"
SCRATCH = "/tmp"  # noqa: S108 - a directory of the pod alone
DIRECTORY_OPTION, CLUSTER_OPTION = "--directory-id=", "--cluster-id="
INITIAL_OPTION = "--initial-controllers="
FORMATTED_BEFORE = "KAVKA_FORMATTED_BEFORE"
"""An option would end a container whose image is older than it."""
FORMAT, BROKER = "format", "broker"
SETTINGS_VOLUME, SCRATCH_VOLUME, KEY_VOLUME = "kavka-settings", "kavka-tmp", "kavka-audit-key"
CERTIFICATES_VOLUME = "kavka-certificates"
SECRET_MODE = 0o440
"""Read by the broker's user alone, by its group; Kubernetes has given the files to root."""
HOST_IP_ENTRY = {"name": HOST_IP[2:-1], "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
RIGHTS = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True, slots=True)
class Identity:
    """The ids with which volumes are formatted. `initial` are the first controllers, where the node is among them.

    Volumes `before` are those that a broker has run on: they are not formatted again.
    """

    cluster_id: str
    directories: Mapping[str, str]  # the ids, by volume
    initial: str = ""
    before: Collection[str] = ()


def formatting(identity: Identity) -> Document:
    """The fields of the container that formats what is new, and nothing that was formatted before."""
    before = ",".join(directory(name) for name in sorted(identity.before))
    told = {"env": [{"name": FORMATTED_BEFORE, "value": before}]} if before else {}
    return {"args": format_arguments(identity), **told}


def format_arguments(identity: Identity) -> list[str]:
    """The arguments of the container that formats what is new."""
    ids = [f"{DIRECTORY_OPTION}{directory(name)}={found}" for name, found in sorted(identity.directories.items())]
    first = [f"{INITIAL_OPTION}{identity.initial}"] if identity.initial else ["--no-initial-controllers"]
    return ["format", "--config", CONFIG, f"{CLUSTER_OPTION}{identity.cluster_id}", "--ignore-formatted", *ids, *first]


def formatted_with(pod_spec: Mapping[str, Any]) -> Identity:
    """The ids with which a pod formats its volumes; those that are missing or empty there are missing or empty."""
    containers = [found for found in pod_spec.get("initContainers") or () if found.get("name") == FORMAT]
    words = [str(word) for container in containers for word in container.get("args") or ()]

    def given(option: str) -> list[str]:
        return [word.removeprefix(option) for word in words if word.startswith(option)]

    pairs = [found.rpartition("=") for found in given(DIRECTORY_OPTION)]
    directories = {place.removeprefix(directory("")): found for place, _, found in pairs if found}
    told = [found for container in containers for found in container.get("env") or ()]
    places = [str(found.get("value")) for found in told if found.get("name") == FORMATTED_BEFORE]
    before = [place.removeprefix(directory("")) for text in places for place in text.split(",")]
    return Identity("".join(given(CLUSTER_OPTION)), directories, "".join(given(INITIAL_OPTION)), before)


def template(layout: Layout, image: str, identity: Identity) -> Document:
    """The template of a node's pod."""
    pod = layout.node.pool.pod
    return {
        "metadata": {
            "labels": {**pod.labels, **node_labels(layout.name, layout.node)},
            "annotations": {
                **pod.annotations,
                FINGERPRINT: fingerprint(layout),
                ASKED: mark_of(layout),
                BESIDES_RESOURCES: besides_resources(layout),
                SETTINGS: properties(layout),
                **({RESTART: mark} if (mark := restart_mark(layout.cluster)) else {}),
            },
        },
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": pod.termination_grace_period_seconds,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
                **pod.security_context,
            },
            **_placed(layout),
            **({"schedulingGates": [{"name": GATE}]} if layout.is_ephemeral else {}),
            "initContainers": [{"name": FORMAT, **formatting(identity), **_container(layout, image)}],
            "containers": [_broker(layout, image)],
            "volumes": [*_volumes(layout), *pod.volumes],
        },
    }


def _placed(layout: Layout) -> Document:
    """On which machines a pod may run. A node whose rack follows from the label of machines stays where that is."""
    pool = layout.node.pool
    asked = pool.pod.spec()
    zone = {pool.topology_key: layout.node.rack} if pool.topology_key and layout.node.rack else {}
    chosen = {**asked.get("nodeSelector", {}), **zone}
    affinity = {"podAntiAffinity": _apart(layout.name), **asked.get("affinity", {})}
    return {**asked, **({"nodeSelector": chosen} if chosen else {}), "affinity": affinity}


def _apart(cluster: str) -> Document:
    """Nodes of a cluster go to machines of their own, where there are enough."""
    term = {"labelSelector": {"matchLabels": {CLUSTER: cluster}}, "topologyKey": "kubernetes.io/hostname"}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _container(layout: Layout, image: str) -> Document:
    """Fields that both containers have in common. Both ask for the same, as a namespace may demand that each asks."""
    mounts: list[Document] = [{"name": name, "mountPath": directory(name)} for name in layout.volumes]
    mounts += [{"name": SETTINGS_VOLUME, "mountPath": CONFIG_DIRECTORY}, {"name": SCRATCH_VOLUME, "mountPath": SCRATCH}]
    mounts += [{"name": KEY_VOLUME, "mountPath": AUDIT_DIRECTORY}] if layout.cluster.spec.is_audited else []
    if layout.cluster.spec.is_secured:
        # A whole directory: Kubernetes brings what has changed in it to a pod that runs, and a single file it does not.
        mounts.append({"name": CERTIFICATES_VOLUME, "mountPath": CERTIFICATES, "readOnly": True})
    return {
        "image": image,
        "resources": layout.node.pool.resources,
        "securityContext": RIGHTS,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _broker(layout: Layout, image: str) -> Document:
    metrics = layout.cluster.spec.metrics
    ports = [(port_name(listener.name), listener.port) for listener in layout.served]
    ports += [("controller", controller_port(layout.cluster))] if layout.node.is_controller else []
    ports += [("metrics", metrics.port)] if metrics.enabled else []
    container = _container(layout, image)
    return {
        "name": BROKER,
        "args": ["run", "--config", CONFIG, *overrides(layout)],
        **({"env": [HOST_IP_ENTRY]} if overrides(layout) else {}),
        **container,
        "volumeMounts": [*container["volumeMounts"], *layout.node.pool.pod.volume_mounts],
        "ports": [{"name": name, "containerPort": port} for name, port in ports],
        **_probes(metrics.port if metrics.enabled else None, ports[0][1]),
    }


def overrides(layout: Layout) -> list[str]:
    """Settings that are known only when the pod has a machine, whose address Kubernetes fills in."""
    urls = advertised(layout)
    return [f"--override={ADVERTISED}={','.join(urls)}"] if any(HOST_IP in url for url in urls) else []


def _probes(metrics: int | None, port: int) -> Document:
    """A start may take as long as a recovery of all logs does; after that a loop that hangs is ended."""

    def asked(path: str) -> Document:
        at: Document = (
            {"tcpSocket": {"port": port}} if metrics is None else {"httpGet": {"path": path, "port": metrics}}
        )
        return at

    return {
        "startupProbe": {**asked("/healthz"), "periodSeconds": 1, "failureThreshold": START_SECONDS_MAX},
        "readinessProbe": {**asked("/readyz"), "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 3},
        "livenessProbe": {**asked("/healthz"), "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
    }


def port_name(listener: str) -> str:
    """The name of a listener as the name of a port: 15 characters, without underscores."""
    return f"l-{listener.lower().replace('_', '-')}"[:15].rstrip("-")


def secret_volume(name: str, secret: str, *, optional: bool = False) -> Document:
    """A volume with all files of a Secret. Where it is optional, a pod starts without it, with no file."""
    own = {"optional": True} if optional else {}
    return {"name": name, "secret": {"secretName": secret, "defaultMode": SECRET_MODE, **own}}


def _data(layout: Layout) -> list[Document]:
    """The volumes with log directories."""
    limit = layout.node.pool.storage.size_limit
    if limit is not None:
        return [{"name": name, "emptyDir": {"sizeLimit": spell(limit)}} for name in layout.volumes]
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": claim_name(layout.name, layout.node, name)}}
        for name in layout.claimed
    ]


def _volumes(layout: Layout) -> list[Document]:
    field = {"fieldPath": f"metadata.annotations['{SETTINGS}']"}
    settings = {"items": [{"path": "server.properties", "fieldRef": field}]}
    key = {
        "secretName": audit_key_name(layout.name),
        "defaultMode": SECRET_MODE,
        "items": [{"key": AUDIT_KEY, "path": AUDIT_KEY}],
    }
    certificates = [secret_volume(CERTIFICATES_VOLUME, certificates_secret(node_name(layout.name, layout.node)))]
    return [
        *_data(layout),
        {"name": SETTINGS_VOLUME, "downwardAPI": settings},
        {"name": SCRATCH_VOLUME, "emptyDir": {}},
        *([{"name": KEY_VOLUME, "secret": key}] if layout.cluster.spec.is_audited else []),
        *(certificates if layout.cluster.spec.is_secured else []),
    ]


def is_gated(pod_spec: Mapping[str, Any]) -> bool:
    """Whether a pod waits to begin with empty volumes."""
    return any(gate.get("name") == GATE for gate in pod_spec.get("schedulingGates") or ())


def is_ephemeral(pod_spec: Mapping[str, Any]) -> bool:
    """Whether the log directories of a pod end with it: the volumes below `DATA` are mounted from no claim."""
    claims, found = (
        claims_of(pod_spec),
        [part for part in pod_spec.get("containers") or () if part.get("name") == BROKER],
    )
    places = {mount["name"]: mount["mountPath"] for broker in found for mount in broker.get("volumeMounts") or ()}
    return any(place == directory(name) and name not in claims for name, place in places.items())


def claims_of(pod_spec: Mapping[str, Any]) -> dict[str, str]:
    """The claims that a pod mounts, by the names of its volumes."""
    found = {}
    for volume in pod_spec.get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            found[str(volume["name"])] = str(claim)
    return found
