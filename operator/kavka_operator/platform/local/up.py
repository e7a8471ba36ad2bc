"""`kavka up`: one process that runs a cluster of this machine, from its resources, until it is told to stop.

A turn looks after the nodes. A look at the cluster (topics, quotas, settings, where the replicas are) goes on beside
it, so that a node that dies is started again at once whatever an answer waits for; a look begins when a resource has
changed, when a node came or went, every `DRIFT_SECONDS` in any case, and without a pause while nodes are restarted.
Nothing that a resource says and no fault in a look or a turn ends it: a fault is told once with its traceback, shown in
the status, and what failed is tried again after a while (`mishaps`). Whatever happens (Ctrl-C at any point, `kill -9`),
no node outlives it: nodes are stopped on the way out, and the kernel ends them when this process is gone.
"""

import json
import os
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from kavka_operator.api.cluster import KafkaCluster, KafkaClusterStatus
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.domain.plan import ClusterPlan, ElectLeaders, Plan, Word, stalled, unknown
from kavka_operator.domain.seen import SeenNode
from kavka_operator.kafka.admin import Admin
from kavka_operator.loop.mishaps import Mishaps
from kavka_operator.platform.local import members
from kavka_operator.platform.local.background import Background
from kavka_operator.platform.local.files import Lock, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.limits import unsupported
from kavka_operator.platform.local.looking import Looker, LookResult, Question
from kavka_operator.platform.local.signals import Signals
from kavka_operator.platform.local.store import Store, Unreadable
from kavka_operator.platform.local.supervisor import Supervisor, read_cluster_id
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile import quotas
from kavka_operator.reconcile.status import Status, cluster_status, with_words
from kavka_operator.reconcile.volumes import empty_volumes

TURN_SECONDS = 0.1
MOVING_TURN_SECONDS = 0.02
DRIFT_SECONDS = 5.0
DRIFT_SECONDS_MAX = 60.0
LOOKS_APART = 20.0  # seconds of rest for a second of look: one at thousands of resources takes a while
DIVIDING_LOOKS_APART = 4.0
RETRY_SECONDS = 1.0
HASTE_SECONDS = 0.2

NODES, TURN, LOOK = "looking after the nodes", "a turn of kavka up", "a look at the cluster"


def rest_seconds(took: float, limited: Sequence[ClientQuota]) -> float:
    """The seconds between two looks at rest; fewer where a budget of the whole cluster has to follow the traffic."""
    is_dividing = any(quota.spec.scope == "Cluster" for quota in limited)
    return max(DRIFT_SECONDS, min((DIVIDING_LOOKS_APART if is_dividing else LOOKS_APART) * took, DRIFT_SECONDS_MAX))


class UpError(Exception):
    """The cluster cannot be run; the message says why and what to do."""


@dataclass(slots=True)
class Up:
    """A running local cluster. `connect` makes an admin client for bootstrap addresses."""

    layout: Layout
    signals: Signals
    connect: Callable[[str], Admin]
    tell: Callable[[str], None]
    on_ready: Callable[[], None]
    _lock: Lock = field(init=False)
    _store: Store = field(init=False)
    _supervisor: Supervisor = field(init=False)
    _looker: Looker = field(init=False)
    _looking: Background[LookResult] | None = None
    _moves_before: int = 0
    _began: float = 0.0
    _took: float = 0.0  # how long the last look took
    _next_look_at: float = 0.0
    _stamp: tuple[int, ...] = ()
    _said: str = ""
    _is_ready: bool = False
    _cluster: KafkaCluster | None = None  # the newest that can be understood
    _mishaps: Mishaps = field(init=False)
    _unreadable: dict[Key, str] = field(default_factory=dict)

    def run(self) -> None:
        """Run the cluster. Raises Stopped when a signal arrives, and UpError if it cannot go on."""
        self._lock = Lock(self.layout.lock)
        self._store = Store(self.layout)
        self._mishaps = Mishaps(self.tell)
        self._looker = Looker(self.connect, self._mishaps)
        if not self._lock.take():
            raise UpError(f"{self._where()} is running already; stop it with `kavka down`")
        self._supervisor = Supervisor(
            self.layout, self.signals, time.monotonic, self.tell, read_cluster_id(self.layout.cluster_id, _draw_id)
        )
        try:
            self._introduce()
            self._supervisor.stop_orphans()
            while True:
                self._safely(NODES, self._tend)
                self._safely(TURN, self._turn)
                time.sleep(MOVING_TURN_SECONDS if self._supervisor.is_moving or self._looking else TURN_SECONDS)
        finally:
            self._leave()

    def _safely(self, subject: str, work: Callable[[], None]) -> None:
        """Do a part of a turn. A fault in it is told and noted; only UpError is raised."""
        try:
            work()
        except UpError:
            raise
        except Exception as error:  # noqa: BLE001 - the brokers go on
            words = self._mishaps.note(subject, error, _now(), self._stamp)
            with suppress(Exception):  # the state directory may be what has failed
                self._show(words)
        else:
            if subject == NODES:
                self._mishaps.clear(subject)

    def _show(self, words: tuple[Word, ...]) -> None:
        """Write the words as the condition of the KafkaCluster; the rest of its status stays."""
        for cluster in self._store.all():
            if isinstance(cluster, KafkaCluster):
                self._store.set_status(cluster, with_words(cluster, words, _now()))

    def _introduce(self) -> None:
        """Write which process runs the cluster, for `kavka down`."""
        write_whole(self.layout.supervisor, json.dumps({"pid": os.getpid()}) + "\n")

    def _tend(self) -> None:
        """Look after the nodes."""
        if self._supervisor.tick():
            self._next_look_at = 0.0

    def _turn(self) -> None:
        if self._mishaps.waiting(TURN, _now(), self._store.stamp()):
            return
        if self._looking is not None:
            if self._looking.is_done:
                result, self._looking = self._looking.result(), None
                self._took = time.monotonic() - self._began
                self._note(result)
                if self._supervisor.moves == self._moves_before:
                    self._step(result)
                else:
                    self._next_look_at = 0.0  # a node has come or gone since the look began: look again before acting
            return
        now, stamp = time.monotonic(), self._store.stamp()
        # A change that is half written would cost a second look.
        is_changed = stamp != self._stamp and not self._store.is_being_changed
        if is_changed or now >= self._next_look_at:
            self._stamp = stamp
            self._next_look_at = now + DRIFT_SECONDS_MAX  # `_step` says when to look again
            self._look()

    def _look(self) -> None:
        """Begin a look; where no node runs, only start nodes."""
        question = self._question()
        self._moves_before = self._supervisor.moves
        if question.bootstrap:
            self._looking = Background(lambda: self._looker.look(question))
            self._began = time.monotonic()
        else:
            self._step(LookResult())

    def _question(self) -> Question:
        resources, unreadable = self._store.read()
        cluster = self._newest_cluster(resources)
        brokers = self._supervisor.brokers()
        return Question(
            cluster=cluster,
            resources=[resource for resource in resources if isinstance(resource, Topic | ClientQuota)],
            bootstrap=",".join(self._supervisor.addresses()),
            nodes=self._supervisor.metrics_addresses(),
            brokers_expected=len(brokers),
            is_forming=not self._is_ready,
            now=_now(),
            claimed=[unread.topic_name for unread in unreadable if unread.topic_name is not None],
        )

    def _newest_cluster(self, resources: list[AnyResource]) -> KafkaCluster:
        """The KafkaCluster as it is wanted now, or as it could last be understood. Raises UpError."""
        self._cluster = next((resource for resource in resources if isinstance(resource, KafkaCluster)), self._cluster)
        if self._cluster is None:
            raise UpError(f"{self._where()} cannot be understood; mend {self.layout.resources}, or apply it again")
        return self._cluster

    def _step(self, result: LookResult) -> None:
        """Bring the nodes one step on."""
        now = _now()
        resources, unreadable = self._store.read()
        self._note_unreadable(unreadable, now)
        cluster = self._newest_cluster(resources)
        if problem := unsupported(cluster, self.layout, members.read(self.layout)):
            self._refuse(cluster, problem, now)
            self._next_look_at = min(self._next_look_at, time.monotonic() + DRIFT_SECONDS)
            return
        wanted = self._supervisor.wanted(cluster)
        volumes = self._supervisor.volumes()
        plan = clusters.reconcile(cluster, wanted, self._seen_nodes(result), result.seen, result.survey, now, volumes)
        self._perform(plan)
        if result.refused is not None and plan.is_at_rest:
            plan = Plan(words=stalled("Rejected", result.refused))
        if result.fault is not None:
            plan = Plan(words=self._mishaps.note(LOOK, result.fault, now))
        else:
            self._mishaps.clear(LOOK)
        limited = [resource for resource in resources if isinstance(resource, ClientQuota)]
        status = cluster_status(
            cluster,
            [*wanted, *self._supervisor.leaving()],
            self._seen_nodes(result),
            result.seen,
            plan,
            now,
            unmanaged=quotas.unmanaged(result.seen.quotas, limited) if result.seen else (),
            places=self._supervisor.places(),
            survey=result.survey,
            empty=empty_volumes(cluster, wanted, volumes),
        )
        if not any(unread.key == key_of(cluster) for unread in unreadable):
            self._set_status(cluster, status)
        self._mishaps.clear(TURN)
        self._note_readiness(status, plan)
        self._next_look_at = min(self._next_look_at, time.monotonic() + self._pause(result, plan, limited))

    def _seen_nodes(self, result: LookResult) -> Mapping[int, SeenNode]:
        return {
            number: replace(node, obstacles=result.obstacles.get(number, ()))
            for number, node in self._supervisor.seen().items()
        }

    def _pause(self, result: LookResult, plan: ClusterPlan, limited: Sequence[ClientQuota]) -> float:
        """The seconds until the next look."""
        if result.fault is not None:
            return self._mishaps.pause_seconds(LOOK)
        if plan.rollout is not None or plan.actions or not (self._is_ready or plan.is_at_rest):
            return HASTE_SECONDS
        at_rest = rest_seconds(self._took, limited)
        return at_rest if result.is_at_rest and plan.is_at_rest else RETRY_SECONDS

    def _perform(self, plan: ClusterPlan) -> None:
        for action in plan.actions:
            if isinstance(action, ElectLeaders):
                self.tell(self._looker.elect(action) or str(action))
            else:
                self._supervisor.perform(action)
        if plan.rollout is not None and plan.rollout.blocked_by:
            self._say_once(f"roll: {plan.rollout.blocked_by[0]}")

    def _say_once(self, words: str) -> None:
        """Say words that may hold for a while, once."""
        if words != self._said:
            self._said = words
            self.tell(words)

    def _note(self, result: LookResult) -> None:
        """Tell and write what a look has done about topics, quotas and settings."""
        if result.error is not None and self._is_ready:
            self._say_once(result.error)
        for action in result.done:
            self.tell(str(action))
        if result.outcome is None:
            return
        for resource in self._store.all():
            status = result.outcome.statuses.get(key_of(resource))
            if status is not None:
                self._set_status(resource, status)
        for key in result.outcome.released:
            if self._store.remove(key):
                self.tell(f'{key[0]} "{key[2]}" is no longer declared')
        if result.outcome.released:
            self._stamp = self._store.stamp()

    def _set_status(self, resource: AnyResource, status: Status) -> None:
        """Write a status; on a full disk, say so and go on."""
        try:
            self._store.set_status(resource, status)
        except OSError as error:
            self._say_once(f"the status of {resource.identity} cannot be written: {error}")

    def _note_unreadable(self, unreadable: list[Unreadable], now: datetime) -> None:
        """Show which resources cannot be understood; release deleted ones, as what they have set is unknown."""
        for unread in unreadable:
            name = f'{unread.key[0]} "{unread.key[2]}"'
            if unread.is_deleted and unread.key[0] != KafkaCluster.kind_name:
                self._store.remove(unread.key)
                self.tell(
                    f"{name} is no longer declared; what it has set in Kafka stays, as it could not be understood"
                )
                continue
            self._store.note_unreadable(unread, now)
            if unread.words != self._unreadable.get(unread.key):
                self.tell(f"{name} cannot be understood and is left alone: {unread.words}")
        self._unreadable = {unread.key: unread.words for unread in unreadable}

    def _refuse(self, cluster: KafkaCluster, problem: str, now: datetime) -> None:
        """Raise UpError for a cluster that cannot be run, or leave it as it runs if a change made it so."""
        if all(node.state == "Stopped" for node in self._supervisor.seen().values()):
            raise UpError(problem)
        plan: ClusterPlan = Plan(words=stalled("Unsupported", problem))
        self._store.set_status(cluster, cluster_status(cluster, [], {}, None, plan, now))

    def _note_readiness(self, status: KafkaClusterStatus, plan: ClusterPlan) -> None:
        """Say what keeps the cluster from being ready, or that it is. Raises UpError if no node runs."""
        stalled_words = [word.message for word in plan.words if word.type == "Stalled"]
        if stalled_words and not self._is_ready:
            if all(node.state in {"Failed", "Stopped"} for node in status.brokers):
                raise UpError(stalled_words[0])
            self._say_once(stalled_words[0])
        condition = status.condition("Ready")
        if not self._is_ready and condition is not None and condition.status == "True":
            self._is_ready = True
            self.on_ready()

    def _leave(self) -> None:
        """Stop the nodes and clean up for the next `up`."""
        try:
            self._supervisor.stop()
            if self._looking is None:
                self._looker.close()
        finally:
            with suppress(Exception):  # whatever keeps the status from being written must not keep the rest from it
                self._note_stopped()
            self.layout.supervisor.unlink(missing_ok=True)
            self._lock.release()

    def _note_stopped(self) -> None:
        now = _now()
        for cluster in self._store.all():
            if isinstance(cluster, KafkaCluster):
                plan: ClusterPlan = Plan(words=unknown("Stopped", "not running; start it with `kavka up`"))
                wanted, places = self._supervisor.wanted(cluster), self._supervisor.places()
                self._store.set_status(cluster, cluster_status(cluster, wanted, {}, None, plan, now, places=places))

    def _where(self) -> str:
        return f'KafkaCluster "{self.layout.cluster}"'


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _draw_id() -> str:
    """A random id as Kafka spells ids; none that a command line would take for an option."""
    while True:
        drawn = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not drawn.startswith("-"):
            return drawn
