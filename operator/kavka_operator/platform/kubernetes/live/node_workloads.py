"""Nodes as pods: a StatefulSet of one for each node, and volumes that are kept.

`look` lists what there is and decides nothing; what a cluster has once (Services, the guard of the controllers) is
put right there. A template changes only at the moment when its node is to be started or restarted, so a pod that is
evicted comes back with what it had. Before a restart the pod is read again, and deleted only as it was read.

Ids are drawn before anything is formatted, and kept on the claims of the volumes (`volume_claims`) before there are
StatefulSets. A volume that is made again later joins as an observer, and never votes as the controller that it was.
Brokers whose volumes end with their pods have no claims: what such a cluster keeps is on the claims of its controllers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import SeenNode
from kavka_operator.domain.plan import GrowVolume, LiftGate, NodeAction, ResizeNode, RestartNode, StartNode, StopNode
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.live.analytics_runs import AnalyticsOf
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.live.certificate_secrets import Certified
from kavka_operator.platform.kubernetes.live.cluster_objects import Shared
from kavka_operator.platform.kubernetes.live.disruption_budgets import Budgets
from kavka_operator.platform.kubernetes.live.missing_pods import Podless
from kavka_operator.platform.kubernetes.live.object_list import ObjectList
from kavka_operator.platform.kubernetes.live.own_objects import OwnObjects
from kavka_operator.platform.kubernetes.live.pod_dry_run import Rehearsal, Trial
from kavka_operator.platform.kubernetes.live.pod_resizer import Resizing
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.platform.kubernetes.live.secrets import AuditKey
from kavka_operator.platform.kubernetes.live.templates import is_observed
from kavka_operator.platform.kubernetes.live.volume_claims import VolumeClaims
from kavka_operator.platform.kubernetes.objects import manifests
from kavka_operator.platform.kubernetes.objects.names import (
    FORMATTED,
    GATE,
    Document,
    name_of,
    uid_of,
)
from kavka_operator.platform.kubernetes.objects.pod_template import (
    FORMAT,
    Identity,
    claims_of,
    formatted_with,
    formatting,
    template,
)
from kavka_operator.platform.kubernetes.objects.settings import Layout, fingerprint
from kavka_operator.platform.kubernetes.observe import listeners, node_objects, services, zones
from kavka_operator.platform.kubernetes.observe.node_objects import Known
from kavka_operator.platform.kubernetes.observe.node_state import Sight
from kavka_operator.platform.kubernetes.validation import faults, unwanted

BEGINNINGS_MAX = 3
WITHOUT_GATE = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}


@dataclass(slots=True)
class Hosted:
    """A `Platform`: the nodes of one cluster are pods.

    `image` is that of nodes whose resource names none; `news` counts what was heard of the cluster's objects; `draw`
    gives a random id.
    """

    key: ClusterKey
    api: Api
    bridge: Bridge
    image: str | None
    news: Callable[[], int]
    clock: Callable[[], float]
    draw: Callable[[], str]
    sees_machines: bool = False
    """Whether it may ask which machines are cordoned: only where it may see the whole Kubernetes."""
    audit_image: str | None = None
    """The image of the analytics of a resource that names none."""
    layouts: Mapping[int, Layout] = field(default_factory=dict)
    _looked_at: Known = field(default_factory=Known)
    _taken: set[int] = field(default_factory=set)
    """The nodes that were taken down since the last look."""
    _redrawn: dict[tuple[int, str], str] = field(default_factory=dict)
    """Ids of volumes in the place of lost ones, which a template was told and no claim has yet."""
    _budgets: Budgets = field(init=False)
    listed: ObjectList = field(init=False)
    _objects: OwnObjects = field(init=False)
    _claims: VolumeClaims = field(init=False)
    _rehearsal: Rehearsal = field(init=False)
    _shared: Shared = field(init=False)
    _analytics: AnalyticsOf = field(init=False)
    _resizing: Resizing = field(init=False)
    certified: Certified = field(init=False)

    def __post_init__(self) -> None:
        self._budgets = Budgets(self.key, self.api, self.bridge, self.clock)
        podless = Podless(self.key[0], self.api, self.bridge, self.clock)
        self.listed = ObjectList(self.key, self.api, self.bridge, self.clock, self.news, podless, self.sees_machines)
        self._objects = OwnObjects(self.key[0], self.api, self.bridge)
        self._claims = VolumeClaims(self.listed, self._objects, self.draw)
        self._rehearsal = Rehearsal(self.api, self.bridge, self.clock)
        audit_key = AuditKey(self.api, self.bridge, self.clock)
        self._shared = Shared(audit_key, self._objects.put, self._objects.delete)
        self._analytics = AnalyticsOf(self.key, self.api, self.bridge, self.audit_image, self.clock)
        self._resizing = Resizing(self.api, self.bridge)
        self.certified = Certified(self.key, self.api, self.bridge, self.clock, self._objects.put)

    @property
    def _known(self) -> Known:
        """The cluster's objects as they were listed last."""
        return self.listed.known

    def look(self, cluster: KafkaCluster) -> View:
        """The nodes as they are wanted and seen now. Raises ApiError."""
        self.listed.refresh()
        self._taken.clear()
        sight = self._sight(cluster)
        if self._mend(sight):
            self.listed.relist()
            sight = self._sight(cluster)
        known = self._looked_at = self._known
        self.layouts = sight.layouts
        seen = sight.seen()
        marks = node_objects.stamp(known, seen)
        running = [number for number, node in seen.items() if node.state == "Running"]
        problems = faults(self.layouts.values(), known, self.image, sees_machines=self.sees_machines)
        # What a pool is refused for takes nothing from the nodes that run: they are served and asked all the same.
        problems = problems or [*self._rehearsal.refusals(self._changing(seen)), *self._provide(cluster)]
        problems += self.certified.problems(cluster, self.layouts, known, running)
        has_way_in = not cluster.spec.is_secured or self.certified.seen is not None
        view = View(
            wanted=sight.wanted(),
            seen=seen,
            volumes=sight.volumes(),
            leaving=sight.leaving(),
            places={number: (listeners.address(known, layout), None) for number, layout in self.layouts.items()},
            outside=services.begins(cluster, self.layouts.values(), known),
            begin=services.begin(cluster),
            metrics=listeners.metrics_pages(known, running),
            bootstrap=",".join(self._addresses(running)) if has_way_in else "",
            pools=sight.pools,
            refusal="; ".join(problems) or None,
            stamp=marks,
            asked=frozenset(
                number for number, pod in known.pods.items() if node_objects.machine_of(pod) in self.listed.cordoned
            ),
            security=self.certified.security,
            certificates=self.certified.seen,
        )
        if problems:
            return view
        begin = ",".join(self._addresses(self.layouts)[:BEGINNINGS_MAX])
        return replace(view, analytics=self._analytics.keep(cluster, begin))

    def _addresses(self, numbers: Iterable[int]) -> list[str]:
        """Addresses of the brokers among these nodes."""
        found = (self.layouts[number] for number in sorted(numbers) if number in self.layouts)
        return [listeners.bootstrap(self._known, layout) for layout in found if layout.node.is_broker]

    def _sight(self, cluster: KafkaCluster) -> Sight:
        """The nodes as they are wanted. The machines are asked for only where a rack is still to be drawn from them."""
        sight = Sight.of(cluster, self._known, self.listed.machines or ())
        nodes = [layout.node for layout in sight.layouts.values()]
        if self.sees_machines and self.listed.machines is None and zones.are_wanted(nodes, self._known):
            sight = Sight.of(cluster, self._known, self.listed.look_up_machines())
        return replace(sight, kept=self._resizing.kept(sight))

    def _mend(self, sight: Sight) -> bool:
        """Write ids again that claims have lost, where a broker runs on the volume; whether any were written.

        Its pod has formatted the volume with them, or found it so. Where none runs, the volume may be another.
        """
        written = False
        for number, layout in sight.layouts.items():
            written = self._note_formatted(layout) or written
            wiped, pod = node_objects.wiped(self._known, number), self._known.pods.get(number)
            if not wiped or pod is None or not node_objects.serves(pod):
                continue
            ids = formatted_with(pod["spec"])
            for name in wiped:
                if ids.cluster_id and ids.directories.get(name):
                    kept = manifests.kept_of(ids.cluster_id, ids.directories[name], self._known.initial or ids.initial)
                    kept[FORMATTED] = ids.directories[name]
                    with suppress(PlatformUnavailableError):  # it is another's: the faults tell
                        self._claims.write(layout, name, kept)
                        written = True
        return written

    def _note_formatted(self, layout: Layout) -> bool:
        """Note on claims that a broker runs there, and tell its template, so that no pod formats them again.

        A volume that is empty one day has lost what its id stands for. Whether any were written.
        """
        number = layout.node.id
        live, proved = self._known.sets.get(number), node_objects.proved(self._known, number)
        if live is None or len(self._known.cluster_ids) != 1:
            return False
        try:
            for name in proved.keys() & set(layout.claimed):
                self._claims.write(
                    layout, name, {**self._claims.ids_on(number, name), FORMATTED: self._claims.id_of(number, name)}
                )
            if proved:
                self.listed.relist()
            return self._tell_formatted(layout, live) or bool(proved)
        except PlatformUnavailableError:
            return False  # it is another's: the faults tell

    def _tell_formatted(self, layout: Layout, live: Document) -> bool:
        """Let the template of a node know which of its volumes hold something; whether it had to be told."""
        number = layout.node.id
        asked = formatted_with(live["spec"]["template"]["spec"])
        claims = self._known.claims_of(number)
        before = [name for name in asked.directories if name in claims and node_objects.is_formatted(claims[name])]
        if set(before) <= set(asked.before):
            return False
        self._format_with(layout, live, replace(asked, before=before))
        return True

    def _format_with(self, layout: Layout, live: Document, identity: Identity) -> Document:
        """Give the template of a node other ids to format volumes with, and keep everything else of it."""
        told = deepcopy(live["spec"]["template"])
        for container in told["spec"]["initContainers"]:
            if container["name"] == FORMAT:
                container.pop("env", None)
                container.update(formatting(identity))
        return self._objects.put(layout.cluster, manifests.stateful_set(layout, told), live)

    def _changing(self, seen: Mapping[int, SeenNode]) -> Iterator[Trial]:
        """A node of each pool whose nodes are not all as they are wanted, to be tried."""
        pools = set()
        for number, layout in self.layouts.items():
            mark, pool = fingerprint(layout), layout.node.pool.name
            if pool in pools or (number in seen and seen[number].fingerprint == mark):
                continue
            known = self._known.sets.get(number)
            if known is None or manifests.is_ours(known, layout.cluster):
                pools.add(pool)
                yield self._trial(layout, self._manifest(layout, Identity("", {})), known)

    def _trial(self, layout: Layout, manifest: Document, known: Document | None) -> Trial:
        """A StatefulSet as it is to be tried."""
        number, pool = layout.node.id, layout.node.pool.name
        return pool, fingerprint(layout), manifests.with_uid(manifest, known), self._known.pods.get(number)

    def perform(self, action: NodeAction) -> None:
        """Begin an action; `look` tells when it is done. Raises PlatformUnavailableError."""
        try:
            match action:
                case StartNode(node=number) if number in self.layouts:
                    self._start(self.layouts[number])
                case RestartNode(node=number) if number in self.layouts and self._may_take(number):
                    if not node_objects.going_volumes(self._known, number):  # one may have been deleted since the look
                        self._restart(self.layouts[number])
                case StartNode(node=number) if number in {*self._known.sets, *self._known.pods}:
                    raise PlatformUnavailableError(unwanted(number))
                case StopNode(node=number) if self._may_take(number):
                    self._take_down(number)
                case GrowVolume(node=number, volume=name) if number in self.layouts:
                    self._claims.write(self.layouts[number], name, self._claims.ids_on(number, name))
                case ResizeNode(node=number) | LiftGate(node=number) if number in self._known.pods:
                    self._change_pod(action, self._known.pods[number])
                case _:
                    pass  # it has come or gone since it was decided: the next look tells
        except ApiError as error:
            if error.status not in {GONE, CONFLICT}:
                raise PlatformUnavailableError(f"cannot {action}: {error}") from error
        finally:
            self.listed.expire()

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        """Open the budgets of these nodes, and close the others'; whether any was written."""
        return self._budgets.allow(cluster, self._known.sets, nodes)

    def _provide(self, cluster: KafkaCluster) -> list[str]:
        """Put right what the cluster has once; the reasons why that cannot be. Raises ApiError."""
        problems, has_written = self._shared.provide(cluster, self.layouts, self._known)
        if has_written:
            self.listed.expire()
        return problems

    def _start(self, layout: Layout) -> None:
        """Make the StatefulSet of a node that has none; give one that has lost a volume another, and nothing else."""
        number = layout.node.id
        self._expose(layout)
        if not self._known.initial:
            if self._known.sets:
                raise PlatformUnavailableError(
                    "the volumes of the cluster are gone, with all that it knew; bring one back, or delete the"
                    " KafkaCluster and apply it again: that begins a new cluster"
                )
            self._claims.form(self.layouts.values())
        lost = node_objects.lost_volumes(self._known, number)
        if number not in self._known.sets and lost:
            self._objects.delete(self._known.pods[number])  # it would format another volume by the id of the lost one
        elif lost and set(lost) <= set(layout.volumes):
            self._heal(layout, lost)
            return
        self._claims.add_missing(layout)
        self._objects.put(
            layout.cluster, self._manifest(layout, self._claims.identity(layout)), self._known.sets.get(number)
        )

    def _expose(self, layout: Layout) -> None:
        """Raises PlatformUnavailableError where a node could not say yet where clients outside reach it."""
        if names := services.missing(layout):
            raise PlatformUnavailableError(f"node {layout.node.id}: Service {', '.join(names)} has no address yet")

    def _manifest(self, layout: Layout, identity: Identity) -> Document:
        """The StatefulSet of a node as it is wanted."""
        return manifests.stateful_set(layout, template(layout, self._image(layout), identity))

    def _heal(self, layout: Layout, lost: list[str]) -> None:
        """Give a node empty volumes in the place of those that are gone, with ids that nobody has had.

        The template is told first, and keeps everything else: no pod may format the new volume by the id of the old.
        Where that is not sure yet, it is tried again at the next look, with the same ids: other ones would make another
        template, of which the controller has not heard either.
        """
        number = layout.node.id
        live = self._known.sets[number]
        drawn = {name: self._redrawn.setdefault((number, name), self.draw()) for name in lost}
        kept = self._claims.identity(layout)
        mounted = claims_of(live["spec"]["template"]["spec"])
        ids = {name: drawn.get(name) or kept.directories[name] for name in mounted}
        initial = "" if layout.metadata in drawn else kept.initial
        before = [name for name in kept.before if name in mounted and name not in drawn]
        told = self._format_with(layout, live, Identity(kept.cluster_id, ids, initial, before))
        if not self.bridge.wait(is_observed(self.api, told)):
            return
        if (seen := self._known.pods.get(number)) is not None:
            self._objects.delete(seen)
        for name, directory_id in drawn.items():
            self._claims.write(layout, name, manifests.kept_of(kept.cluster_id, directory_id, self._known.initial))
            del self._redrawn[number, name]

    def _take_down(self, number: int) -> None:
        """Delete the StatefulSet of a node, whose pod goes with it, or the pod that one has left behind."""
        found = self._known.sets.get(number) or self._known.pods.get(number)
        if found is not None:
            self._objects.delete(found)

    def _restart(self, layout: Layout) -> None:
        """Give a node what is wanted of it now, and let its pod be made again; later, if that is too early."""
        self._expose(layout)
        number, namespace = layout.node.id, self.key[0]
        known_set, known_pod = self._known.sets.get(number), self._known.pods.get(number)
        if known_set is None:
            return
        now = self.bridge.wait(self.api.find("StatefulSet", namespace, name_of(known_set)))
        pod = self.bridge.wait(self.api.find("Pod", namespace, f"{name_of(known_set)}-0"))
        if now is None or uid_of(now) != uid_of(known_set) or uid_of(pod or {}) != uid_of(known_pod or {}):
            return  # what was decided was decided about another pod
        self._claims.add_missing(layout)
        self._claims.keep_zone(layout)
        manifest = self._manifest(layout, self._claims.identity(layout))
        if words := self._rehearsal.refusal(self._trial(layout, manifest, now)):
            raise PlatformUnavailableError(words)
        told = self._objects.put(layout.cluster, manifest, now)
        if pod is not None and self.bridge.wait(is_observed(self.api, told)):
            self._objects.delete({**pod, "kind": "Pod"})

    def _change_pod(self, action: ResizeNode | LiftGate, pod: Document) -> None:
        """Let a pod be scheduled; or give a broker other resources, and its template too, for its next pod."""
        if isinstance(action, LiftGate):
            self.bridge.wait(self.api.patch_pod(pod, WITHOUT_GATE))
            return
        known_set, layout = self._known.sets.get(action.node), self.layouts.get(action.node)
        if known_set is None or layout is None or not self._resizing.give(layout, pod):
            return
        self._objects.put(layout.cluster, self._manifest(layout, self._claims.identity(layout)), known_set)
        self._resizing.note(layout, pod)

    def _may_take(self, number: int) -> bool:
        """Whether all nodes that were not taken since stand as at the last look: the watch may be slow to tell."""
        self.listed.relist()
        is_same = self._others(self._known) == self._others(self._looked_at)
        self._taken.add(number)
        return is_same

    def _others(self, known: Known) -> tuple[object, ...]:
        """The state of the nodes that were not taken since the last look."""
        nodes = node_objects.seen_nodes(known, {})
        return node_objects.stamp(known, {number: node for number, node in nodes.items() if number not in self._taken})

    def _image(self, layout: Layout) -> str:
        assert layout.cluster.spec.image or self.image, "a cluster without an image is refused before"
        return layout.cluster.spec.image or self.image or ""
