"""What the objects of a cluster say about its nodes. Pure.

A node is its StatefulSet and, while there is one, its pod. The pod tells what the node runs with: a template that was
changed and whose pod was not deleted yet has changed nothing. A node whose volume is gone is stopped: its pod cannot
run before there is another volume.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.pools import NODE_IDS_PER_POOL
from kavka_operator.api.quantity import parse
from kavka_operator.api.stored_resources import part
from kavka_operator.domain.observed import NodeState, SeenNode, SeenVolume, WantedNode
from kavka_operator.platform.kubernetes.objects.containers import last_words
from kavka_operator.platform.kubernetes.objects.names import (
    CLUSTER_ID,
    DIRECTORY_ID,
    FINGERPRINT,
    FIRST_NODE_ID,
    FORMATTED,
    GATE,
    HOLDS_METADATA,
    INITIAL_CONTROLLERS,
    POOL,
    ROLE,
    SETTINGS,
    VOLUME,
    YES,
    Document,
    annotation,
    label,
    name_of,
    number_of,
    uid_of,
)
from kavka_operator.platform.kubernetes.objects.pod_template import (
    BROKER,
    Identity,
    claims_of,
    formatted_with,
    is_ephemeral,
    is_gated,
)
from kavka_operator.platform.kubernetes.objects.settings import Layout, directory, fingerprint, fingerprint_by_spelling

IDS = (CLUSTER_ID, DIRECTORY_ID)
ROLES = ("broker", "controller")
WORDS_LENGTH_MAX = 500
STORAGE_CLASS = "storage.volumes[].storageClassName of its pool"
RESTARTS_MAX = 2
HOPELESS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
"""Reasons why a container waits that do not go away by waiting."""


@dataclass(frozen=True, slots=True)
class Known:
    """The objects of a cluster: by the ids of nodes, and claims by their names."""

    sets: Mapping[int, Document] = field(default_factory=dict)
    pods: Mapping[int, Document] = field(default_factory=dict)
    claims: Mapping[str, Document] = field(default_factory=dict)
    shared: Mapping[tuple[str, str], Document] = field(default_factory=dict)  # by kind and name
    podless: Mapping[int, str] = field(default_factory=dict)  # why a node has no pod, where it was told

    @property
    def cluster_ids(self) -> set[str]:
        """The ids of the cluster that its volumes name: one, unless claims of two clusters are mixed."""
        return {found for claim in self.claims.values() if (found := annotation(claim, CLUSTER_ID))}

    @property
    def initial(self) -> str:
        """The first controllers, as they were written down; empty before."""
        return next((found for claim in self.claims.values() if (found := annotation(claim, INITIAL_CONTROLLERS))), "")

    @property
    def pools(self) -> dict[str, int]:
        """The first ids of the pools that have nodes, or volumes."""
        sets = {label(found, POOL): number - number % NODE_IDS_PER_POOL for number, found in self.sets.items()}
        firsts = {label(claim, POOL): annotation(claim, FIRST_NODE_ID) for claim in self.claims.values()}
        claimed = {pool: int(first) for pool, first in firsts.items() if first.isdecimal()}
        return {pool: first for pool, first in {**sets, **claimed}.items() if pool}

    def claims_of(self, number: int) -> dict[str, Document]:
        """The claims of a node, by the names of its volumes."""
        return {label(claim, VOLUME): claim for claim in self.claims.values() if number_of(claim) == number}

    def metadata_volume(self, number: int) -> str | None:
        """The volume that holds the metadata log of a node; None before it has one.

        Where no claim says so, as when one is lost, the settings do that the node was started with.
        """
        claims = self.claims_of(number)
        found = [name for name, claim in claims.items() if annotation(claim, HOLDS_METADATA) == YES]
        place = parse_properties(settings_of(self, number)).get("metadata.log.dir", "")
        return next(iter(found), place.removeprefix(directory("")) or None)


def by_node(documents: Sequence[Document]) -> dict[int, Document]:
    """Objects by the ids of their nodes."""
    return {number: document for document in documents if (number := number_of(document)) is not None}


def seen_nodes(known: Known, changes: Mapping[int, tuple[str, ...]]) -> dict[int, SeenNode]:
    """Every node that was started. `changes` are the settings of each wanted one that are wanted otherwise now."""
    return {number: _seen(number, known, changes.get(number)) for number in sorted({*known.sets, *known.pods})}


def template_of(known: Known, number: int) -> Mapping[str, Any]:
    """The template with which a node runs, or will be started: of its pod, or of its StatefulSet."""
    return known.pods.get(number) or part(part(known.sets.get(number, {}), "spec"), "template")


def settings_of(known: Known, number: int) -> str:
    """The server.properties that a node runs with."""
    return annotation(template_of(known, number), SETTINGS)


def image_of(known: Known, number: int) -> str:
    """The image that a node runs with."""
    return str(_broker_of(known, number).get("image") or "")


def resources_of(known: Known, number: int) -> dict[str, Any]:
    """The requests and limits that a node runs with."""
    return part(_broker_of(known, number), "resources")


def arguments_of(known: Known, number: int) -> list[str]:
    """The arguments that a node's broker was started with."""
    return [str(word) for word in _broker_of(known, number).get("args") or ()]


def _broker_of(known: Known, number: int) -> Mapping[str, Any]:
    """The container that a node's broker runs in; empty where there is none."""
    containers = part(template_of(known, number), "spec").get("containers") or ()
    return next((container for container in containers if container.get("name") == BROKER), {})


def is_level(known: Known, layout: Layout) -> bool:
    """Whether a node was started with what is wanted of it now."""
    mark = annotation(template_of(known, layout.node.id), FINGERPRINT)
    return mark in {fingerprint(layout), fingerprint_by_spelling(layout)}


def lost_volumes(known: Known, number: int) -> list[str]:
    """The volumes that a node's template mounts and that are gone."""
    return [volume for volume, claim in claims_of(_made_from(known, number)).items() if claim not in known.claims]


def _made_from(known: Known, number: int) -> dict[str, Any]:
    """The spec that the next pod of a node is made from; of its last pod, where it has no StatefulSet."""
    if number in known.sets:
        return part(part(part(known.sets[number], "spec"), "template"), "spec")
    return part(known.pods.get(number, {}), "spec")


def going_volumes(known: Known, number: int) -> tuple[str, ...]:
    """The claims of a node that were deleted and last as long as its pod."""
    return tuple(name_of(claim) for claim in known.claims_of(number).values() if _is_going(claim))


def wiped(known: Known, number: int) -> dict[str, Document]:
    """The claims of a node that have lost the ids that were drawn for them, by the names of its volumes."""
    claims = known.claims_of(number)
    return {name: claim for name, claim in claims.items() if not all(annotation(claim, key) for key in IDS)}


def proved(known: Known, number: int) -> dict[str, Document]:
    """The claims on which a broker runs with their ids, and that do not say so yet, by the names of its volumes."""
    pod = known.pods.get(number)
    if pod is None or not serves(pod):
        return {}
    ids = formatted_with(pod["spec"]).directories
    claims = {name: claim for name, claim in known.claims_of(number).items() if not _is_going(claim)}
    there = {name: claim for name, claim in claims.items() if annotation(claim, DIRECTORY_ID) == ids.get(name)}
    return {name: claim for name, claim in there.items() if not is_formatted(claim)}


def is_formatted(claim: Mapping[str, Any]) -> bool:
    """Whether a broker has run on a volume with the id that it has: it is not empty."""
    return bool(found := annotation(claim, DIRECTORY_ID)) and annotation(claim, FORMATTED) == found


def formatted(known: Known, number: int) -> Identity:
    """The ids with which the volumes of a node were formatted, or will be when its pod starts."""
    return formatted_with(part(template_of(known, number), "spec"))


def _lost_directories(known: Known, number: int) -> tuple[str, ...]:
    """The ids that the lost volumes of a node were formatted with; the name of a volume whose id nobody knows."""
    ids = formatted_with(_made_from(known, number)).directories
    return tuple(ids.get(name, name) for name in lost_volumes(known, number))


def _seen(number: int, known: Known, changed: tuple[str, ...] | None) -> SeenNode:
    """A node; what has `changed` is None for one that is not wanted."""
    state, message = _state(known, number, is_wanted=changed is not None)
    mark = annotation(template_of(known, number), FINGERPRINT)
    status = _broker_status(known.pods.get(number, {}))
    lost = _lost_directories(known, number) if state == "Stopped" else ()
    restarts, going = int(status.get("restartCount", 0)), going_volumes(known, number)
    pod = known.pods.get(number, {})
    return SeenNode(
        *(number, state, mark, restarts, message, changed or ()),
        lost=lost,
        going=going,
        has_begun=_has_begun(pod),
        life=uid_of(pod) if is_ephemeral(part(pod, "spec")) else "",
        is_gated=_is_gated(pod),
    )


def _state(known: Known, number: int, *, is_wanted: bool) -> tuple[NodeState, str]:
    pod = known.pods.get(number)
    if pod is not None and _is_going(pod):
        return "Stopping", ""
    lost = lost_volumes(known, number)
    without = f"the volume {', '.join(lost)} is gone" if lost else ""
    if pod is not None and number not in known.sets:
        if lost and _is_left(pod):
            return "Stopped", f"its StatefulSet is gone; {without}"
        state, words = _state_of_orphan(pod, is_wanted=is_wanted)
        return state, "; ".join(["its StatefulSet is gone", *([words] if words else [])])
    if pod is not None and serves(pod):
        return "Running", ""
    if lost:
        return "Stopped", without
    if pod is None:
        why = known.podless.get(number)
        return "Starting", f"has no pod yet: {why}" if why else "has no pod yet"
    state, words = _on_its_way(pod)
    return state, shortened("; ".join((words, *_unbound(known, number)))) if "Volume" in words else words


def _state_of_orphan(pod: Mapping[str, Any], *, is_wanted: bool) -> tuple[NodeState, str]:
    """The state of a node whose StatefulSet was deleted: with its pod, which goes as well, or without it.

    A wanted node gets another StatefulSet, which takes the pod. One that is not wanted is emptied as it runs.
    """
    if not _is_left(pod):
        return "Stopping", ""
    if is_wanted:
        return "Stopped", ""
    phase = str(part(pod, "status").get("phase", ""))
    if phase in {"Failed", "Succeeded"}:
        return "Failed", f"its pod has ended ({phase}), and nothing makes it again"
    return ("Running", "") if serves(pod) else _on_its_way(pod)


def _is_left(pod: Mapping[str, Any]) -> bool:
    """Whether nothing owns a pod any more, so that it stays."""
    return not part(pod, "metadata").get("ownerReferences")


def _is_going(document: Mapping[str, Any]) -> bool:
    """Whether an object was deleted and is still there: a claim goes when no pod has it any more."""
    return bool(part(document, "metadata").get("deletionTimestamp"))


def _is_gated(pod: Mapping[str, Any]) -> bool:
    """Whether a pod that stays waits to begin with empty volumes."""
    return is_gated(part(pod, "spec")) and not _is_going(pod)


def _on_its_way(pod: Mapping[str, Any]) -> tuple[NodeState, str]:
    """The state of a node whose broker does not answer."""
    if _is_gated(pod):
        return "Starting", f"its pod waits for the end of its scheduling gate {GATE}, as its volumes are empty"
    status = part(pod, "status")
    if status.get("phase") == "Failed":
        return "Restarting", shortened(f"{status.get('reason') or 'Failed'}: {status.get('message') or ''}")
    for container in _containers(pod):
        waits, words = part(part(container, "state"), "waiting"), last_words(container)
        reason = str(waits.get("reason", ""))
        if reason in HOPELESS:
            return "Failed", shortened(f"{reason}: {waits.get('message') or 'no more is known'}")
        if reason == "CrashLoopBackOff" or (words and container.get("restartCount")):
            is_lost = reason == "CrashLoopBackOff" and int(container.get("restartCount", 0)) >= RESTARTS_MAX
            return ("Failed" if is_lost else "Restarting"), shortened(words or "died without a word")
    return "Starting", shortened(_unscheduled(status))


def _unscheduled(status: Mapping[str, Any]) -> str:
    """The scheduler's words for why a pod has no machine yet."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason')}: {condition.get('message', '')}"
    return ""


def _unbound(known: Known, number: int) -> list[str]:
    """The reasons why a node waits for its volumes, of which its scheduler names neither claim nor class."""
    found = known.claims_of(number).values()
    return [_of_claim(claim) for claim in found if part(claim, "status").get("phase") == "Pending"]


def _of_claim(claim: Mapping[str, Any]) -> str:
    """Words for a claim that has no volume yet."""
    name, storage_class = name_of(claim), part(claim, "spec").get("storageClassName")
    if not storage_class:
        return f"claim {name} names no StorageClass ({STORAGE_CLASS}), and none is the default; make one the default"
    remedy = f"make one of this name, or see what kubectl describe pvc {name} says"
    return f'claim {name} waits for a volume of StorageClass "{storage_class}" ({STORAGE_CLASS}); {remedy}'


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    status = part(pod, "status")
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _has_begun(pod: Mapping[str, Any]) -> bool:
    """Whether a container of a pod runs, or has run: not before it has a machine, its volumes and its image."""
    return any(
        found.get("started") or found.get("restartCount") or {"running", "terminated"} & {*part(found, "state")}
        for found in _containers(pod)
    )


def serves(pod: Mapping[str, Any]) -> bool:
    """Whether the broker in a pod has started, and has not ended since."""
    return bool(_broker_status(pod).get("started"))


def _broker_status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((status for status in _containers(pod) if status.get("name") == BROKER), {})


def shortened(words: str) -> str:
    """Words of others in one line, as long as there is room for."""
    return " ".join(words.split())[:WORDS_LENGTH_MAX]


def seen_volumes(known: Known, number: int, sizes: Mapping[str, int | None]) -> tuple[SeenVolume, ...]:
    """The volumes of a node. What they hold is not known here, so that none is ever taken for empty."""
    return tuple(
        SeenVolume(
            name=name,
            place=name_of(claim),
            logs=None,
            has_metadata=annotation(claim, HOLDS_METADATA) == YES,
            directory_id=annotation(claim, DIRECTORY_ID),
            grows_to=size if (size := sizes.get(name)) is not None and size > size_of(claim) else None,
        )
        for name, claim in sorted(known.claims_of(number).items())
    )


def size_of(claim: Mapping[str, Any]) -> int:
    """The bytes that a claim asks for; 0 where it says nothing that can be read."""
    asked = part(part(part(claim, "spec"), "resources"), "requests").get("storage")
    try:
        return parse(asked)
    except ValueError:
        return 0


def address_of(pod: Mapping[str, Any]) -> str:
    """The address of a pod, as a URL has it; empty before it has one."""
    ip = str(part(pod, "status").get("podIP") or "")
    return f"[{ip}]" if ":" in ip else ip


def machine_of(pod: Mapping[str, Any]) -> str:
    """The name of the machine that a pod runs on; empty before it has one."""
    return str(part(pod, "spec").get("nodeName") or "")


def former_node(known: Known, number: int) -> WantedNode:
    """A node that is no longer wanted, as it was last started."""
    found = known.sets.get(number) or known.pods[number]
    roles = tuple(role for role in ROLES if label(found, f"{ROLE}{role}") == YES)
    mark = annotation(template_of(known, number), FINGERPRINT)
    return WantedNode(number, mark, None, roles, tuple(known.claims_of(number)), label(found, POOL))


def stamp(known: Known, nodes: Mapping[int, SeenNode]) -> tuple[object, ...]:
    """A value that changes with the state of any node, and with its pod."""
    return tuple(
        (node.id, node.state, node.fingerprint, node.restarts, uid_of(known.pods.get(node.id, {})))
        for node in nodes.values()
    )
