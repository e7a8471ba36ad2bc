"""The nodes of a cluster on Kubernetes as they would be if its resource were another: nothing is written."""

from collections.abc import Mapping
from dataclasses import replace

from kavka_cli.kubernetes.api_server import ApiServer, KubernetesError
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.cluster_view import View
from kavka_operator.platform.kubernetes.objects.dry_run_pods import fits_in_place_of, pod_of, refused
from kavka_operator.platform.kubernetes.objects.manifests import stateful_set
from kavka_operator.platform.kubernetes.objects.names import Document, name_of
from kavka_operator.platform.kubernetes.objects.pod_template import BROKER, Identity, template
from kavka_operator.platform.kubernetes.observe import node_objects
from kavka_operator.platform.kubernetes.observe.node_objects import Known, by_node
from kavka_operator.platform.kubernetes.observe.node_state import Sight
from kavka_operator.platform.kubernetes.observe.pod_resources import TOO_OLD, is_in_place
from kavka_operator.platform.kubernetes.observe.zones import Machine, machine_from
from kavka_operator.platform.kubernetes.validation import faults

AN_IMAGE = ""
"""Stands for the image of the operator, which no resource tells."""
SOME_IMAGE = "kavka"
"""An image in its place, where a pod is tried that has none yet."""
FORBIDDEN, NOT_FOUND = 403, 404
NO_RIGHT = "cannot create resource"
"""The words of an API server for a right that the person lacks; they are no judgement of the pod."""
KINDS = ("StatefulSet", "Pod", "PersistentVolumeClaim", "Service")


def foreseen(server: ApiServer, cluster: KafkaCluster, before: KafkaCluster | None) -> tuple[View, str]:
    """The nodes that the resource wants, and those that are there; and why what is there is not known for sure.

    Where the objects of the cluster may not be read, or there are none, the nodes are those of its status, with the
    settings that the resource has asked for before.
    """
    try:
        known, doubt = known_of(server, cluster.metadata.namespace, cluster.name), ""
    except KubernetesError as error:
        known, doubt = Known(), f"the nodes are those of the status, as their objects cannot be read: {error}"
    if not known.sets and not known.pods and before is not None:
        known = _as_told(before, known)
    machines, blindness = _machines(server, cluster)
    sight = _resized(server, Sight.of(cluster, known, machines))
    judged = [layout for layout in sight.layouts.values() if not (blindness and layout.node.pool.topology_key)]
    problems, untried = faults(judged, known, AN_IMAGE, sees_machines=True), ""
    if not problems:
        problems, untried = _tried(server, sight)
    view = View(
        wanted=sight.wanted(),
        seen=sight.seen(),
        volumes=sight.volumes(),
        leaving=sight.leaving(),
        pools=sight.pools,
        refusal="; ".join(problems) or None,
    )
    return view, "; ".join(words for words in (doubt, blindness, untried) if words)


def _tried(server: ApiServer, sight: Sight) -> tuple[list[str], str]:
    """Words in which the API server refuses pods of pools that change, by a dry run of one of each; and why it was not
    asked, where that is so.
    """
    refusals: dict[str, str] = {}
    for number, layout in sight.layouts.items():
        pool = layout.node.pool.name
        if pool in refusals or node_objects.is_level(sight.known, layout):
            continue
        image = layout.cluster.spec.image or node_objects.image_of(sight.known, number) or SOME_IMAGE
        pod = pod_of(stateful_set(layout, template(layout, image, Identity("", {}))))
        try:
            server.try_pod(pod)
            refusals[pool] = ""
        except KubernetesError as error:
            if error.status in {0, NOT_FOUND} or (error.status == FORBIDDEN and NO_RIGHT in str(error)):
                return [], f"whether Kubernetes takes the pods, as it cannot be asked: {error}"
            is_enough = fits_in_place_of(str(error), sight.known.pods.get(number))
            refusals[pool] = "" if is_enough else refused(pool, str(error))
    return [words for words in refusals.values() if words], ""


def _resized(server: ApiServer, sight: Sight) -> Sight:
    """The nodes, of which none takes other resources while it runs where this Kubernetes cannot do that."""
    found = [number for number, layout in sight.layouts.items() if is_in_place(sight.known, layout)]
    try:
        return sight if not found or server.resizes_pods() else replace(sight, kept=dict.fromkeys(found, TOO_OLD))
    except KubernetesError:
        return replace(sight, kept=dict.fromkeys(found, "what this Kubernetes can do is not told"))


def _machines(server: ApiServer, cluster: KafkaCluster) -> tuple[list[Machine], str]:
    """The machines, where a rack is drawn from their labels; and why racks are not known where they are not."""
    if not any(pool.topology_key for pool in cluster.spec.node_pools):
        return [], ""
    try:
        return [machine_from(found) for found in server.machines()], ""
    except KubernetesError as error:
        return [], f"racks of new nodes, as machines cannot be read: {error}"


def known_of(server: ApiServer, namespace: str, name: str) -> Known:
    """The objects of a cluster. Raises KubernetesError."""
    sets, pods, claims, services = (server.objects_of(kind, namespace, name) for kind in KINDS)
    return Known(
        by_node(sets),
        by_node(pods),
        {name_of(claim): claim for claim in claims},
        {("Service", name_of(service)): service for service in services},
    )


def _as_told(before: KafkaCluster, known: Known) -> Known:
    """The objects that the nodes of the status would have, had they been made from the resource."""
    layouts = Sight.of(before, known).layouts
    states = {node.id: node.state for node in before.status.nodes}
    sets: dict[int, Document] = {}
    pods: dict[int, Document] = {}
    for number in states.keys() & layouts.keys():
        layout = layouts[number]
        pod = template(layout, before.spec.image or AN_IMAGE, Identity("", dict.fromkeys(layout.volumes, "")))
        sets[number] = {"metadata": pod["metadata"], "spec": {"template": pod}}
        pods[number] = {**pod, "status": _status(is_running=states[number] == "Running")}
    return Known(sets, pods, known.claims, known.shared)


def _status(*, is_running: bool) -> Mapping[str, object]:
    return {"containerStatuses": [{"name": BROKER, "started": is_running}]}
