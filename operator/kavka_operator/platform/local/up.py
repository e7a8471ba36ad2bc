"""`kavka up`: one process that runs a cluster of this machine, from its resources, until it is told to stop.

A turn looks after the nodes, and settles topics and quotas when a resource has changed, when a node came or went, and
every `DRIFT_SECONDS` in any case. Between turns it sleeps. Whatever happens (Ctrl-C at any point, an error, `kill -9`),
no node outlives it: nodes are stopped on the way out, and the kernel ends them when this process is gone.
"""

import json
import os
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kavka_operator.api.cluster import KafkaCluster, KafkaClusterStatus
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.kafka import usage
from kavka_operator.kafka.admin import Admin, AdminError
from kavka_operator.platform.base import PlatformUnavailableError
from kavka_operator.platform.local.files import Lock, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.limits import unsupported
from kavka_operator.platform.local.rendering import local_nodes, port_clashes
from kavka_operator.platform.local.signals import Signals
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.local.supervisor import Supervisor, read_cluster_id
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile import quotas
from kavka_operator.reconcile.plan import Plan, stalled, unknown
from kavka_operator.reconcile.seen import SeenCluster, SeenUsage
from kavka_operator.reconcile.status import cluster_status
from kavka_operator.settle import key_of, settle

TURN_SECONDS = 0.2
MOVING_TURN_SECONDS = 0.02
DRIFT_SECONDS = 5.0
RETRY_SECONDS = 1.0


class UpError(Exception):
    """The cluster cannot be run; the message says why and what to do."""


@dataclass(slots=True)
class Up:
    """A running local cluster. `connect` makes an admin client for a bootstrap address."""

    layout: Layout
    signals: Signals
    connect: Callable[[str], Admin]
    tell: Callable[[str], None]
    on_ready: Callable[[], None]
    _lock: Lock = field(init=False)
    _store: Store = field(init=False)
    _supervisor: Supervisor = field(init=False)
    _admin: Admin | None = None
    _settle_at: float = 0.0
    _stamp: tuple[int, ...] = ()
    _seen: SeenCluster | None = None
    _is_ready: bool = False

    def run(self) -> None:
        """Run the cluster until a signal arrives (as `Stopped`) or it cannot go on (`UpError`)."""
        self._lock = Lock(self.layout.lock)
        self._store = Store(self.layout)
        if not self._lock.take():
            raise UpError(f"{self._where()} is running already; stop it with `kavka down`")
        self._supervisor = Supervisor(
            self.layout, self.signals, time.monotonic, self.tell, read_cluster_id(self.layout.cluster_id, _draw_id)
        )
        try:
            self._introduce()
            self._supervisor.stop_orphans()
            while True:
                self._turn()
                time.sleep(MOVING_TURN_SECONDS if self._supervisor.is_moving else TURN_SECONDS)
        except PlatformUnavailableError as error:
            raise UpError(str(error)) from None
        finally:
            self._leave()

    def _introduce(self) -> None:
        """Say who runs the cluster, for `kavka down`."""
        write_whole(self.layout.supervisor, json.dumps({"pid": os.getpid()}) + "\n")

    def _turn(self) -> None:
        changed = self._supervisor.tick()
        now = time.monotonic()
        stamp = self._store.stamp()
        if changed or stamp != self._stamp or now >= self._settle_at:
            self._stamp = stamp
            self._settle_at = now + (DRIFT_SECONDS if self._settle() else RETRY_SECONDS)

    def _settle(self) -> bool:
        """Bring everything one step on; whether all went well."""
        now = datetime.now(UTC).replace(microsecond=0)
        resources = self._store.all()
        cluster = next(each for each in resources if isinstance(each, KafkaCluster))
        if problem := unsupported(cluster) or "; ".join(port_clashes(local_nodes(cluster, self.layout))):
            self._refuse(cluster, problem, now)
            return False
        limited = [each for each in resources if isinstance(each, ClientQuota)]
        topics_and_quotas = [each for each in resources if isinstance(each, Topic | ClientQuota)]
        wanted = self._supervisor.wanted(cluster)
        went_well = self._settle_kafka(topics_and_quotas, now)
        plan = clusters.reconcile(cluster, wanted, self._supervisor.seen(), self._seen)
        for action in plan.actions:
            self._supervisor.perform(action)  # type: ignore[arg-type]
        if plan.actions:
            self._settle_at = 0.0
        status = cluster_status(
            cluster,
            wanted,
            self._supervisor.seen(),
            self._seen,
            plan.words,
            now,
            unmanaged=quotas.unmanaged(self._seen.quotas, limited) if self._seen else (),
            places=self._supervisor.places(),
        )
        self._store.set_status(cluster, status)
        self._note_readiness(status, plan)
        return went_well and not plan.actions

    def _settle_kafka(self, resources: list[Topic | ClientQuota], now: datetime) -> bool:
        """Topics and quotas; whether the cluster could be seen."""
        self._seen = None
        if not any(each.state == "Running" for each in self._supervisor.seen().values()):
            self._disconnect()
            return False
        try:
            if self._admin is None:
                self._admin = self.connect(next(iter(self._supervisor.places().values()))[0])
            outcome = settle(resources, self._admin, now, self._usage(resources))
        except AdminError as error:
            self.tell(str(error))
            self._disconnect()
            return False
        for action in outcome.done:
            self.tell(str(action))
        self._seen = outcome.cluster
        for each in resources:
            if key_of(each) in outcome.statuses:
                self._store.set_status(each, outcome.statuses[key_of(each)])
        for key in outcome.released:
            self._store.remove(key)
            self.tell(f'{key[0]} "{key[2]}" is no longer declared')
        if outcome.released:
            self._stamp = self._store.stamp()
        return True

    def _usage(self, resources: list[Topic | ClientQuota]) -> Mapping[str, tuple[SeenUsage, ...]]:
        if not any(isinstance(each, ClientQuota) for each in resources):
            return {}
        pages = {number: usage.fetch(address) for number, address in self._supervisor.metrics_addresses().items()}
        return usage.usage_by_entity({number: page for number, page in pages.items() if page is not None})

    def _refuse(self, cluster: KafkaCluster, problem: str, now: datetime) -> None:
        """A cluster that cannot be run is refused at the start; one changed into such is left as it runs."""
        if not self._supervisor.seen():
            raise UpError(problem)
        words = stalled("Unsupported", problem)
        self._store.set_status(cluster, cluster_status(cluster, [], {}, self._seen, words, now))

    def _note_readiness(self, status: KafkaClusterStatus, plan: Plan) -> None:
        failed = [node for node in status.brokers if node.state == "Failed"]
        if failed and not self._is_ready:
            raise UpError("; ".join(word.message for word in plan.words[:1]))
        condition = status.condition("Ready")
        if not self._is_ready and condition is not None and condition.status == "True":
            self._is_ready = True
            self.on_ready()

    def _disconnect(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _leave(self) -> None:
        """Stop the nodes and leave the place as the next `up` wants to find it."""
        try:
            self._supervisor.stop()
            self._disconnect()
        finally:
            self._note_stopped()
            self.layout.supervisor.unlink(missing_ok=True)
            self._lock.release()

    def _note_stopped(self) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        for each in self._store.all():
            if isinstance(each, KafkaCluster):
                wanted = self._supervisor.wanted(each)
                words = unknown("Stopped", "not running; start it with `kavka up`")
                places = self._supervisor.places()
                self._store.set_status(each, cluster_status(each, wanted, {}, None, words, now, places=places))

    def _where(self) -> str:
        return f'KafkaCluster "{self.layout.cluster}"'


def _draw_id() -> str:
    """A random id as Kafka spells ids; none that a command line would take for an option."""
    while True:
        drawn = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not drawn.startswith("-"):
            return drawn
