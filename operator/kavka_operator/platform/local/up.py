"""`kavka up`: one process that runs a cluster of this machine, from its resources, until it is told to stop.

A turn looks after the nodes, and the loop of the cluster (`cluster_loop`) goes on beside it, so that a node that dies
is started again at once whatever an answer waits for. Whatever happens (Ctrl-C at any point, `kill -9`), no node
outlives it: nodes are stopped on the way out, and the kernel ends them when this process is gone.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.plan import ClusterPlan, Plan, unknown
from kavka_operator.kafka.admin import Connect
from kavka_operator.loop.cluster_loop import ClusterLoop, HopelessError
from kavka_operator.loop.observer import LookResult
from kavka_operator.platform.external import ExternalPlatform
from kavka_operator.platform.local.background import Background
from kavka_operator.platform.local.files import Lock, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_directories import NodeDirectories
from kavka_operator.platform.local.node_processes import NodeProcesses
from kavka_operator.platform.local.secrets import read_secret
from kavka_operator.platform.local.signals import Signals
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.local.supervisor import Supervisor, read_cluster_id
from kavka_operator.platform.local.user_secrets import LocalSecrets
from kavka_operator.platform.random_ids import draw_id
from kavka_operator.reconcile.status import PassResult, cluster_status, external_status

TURN_SECONDS = 0.1
MOVING_TURN_SECONDS = 0.02
NODES = "looking after the nodes"


class UpError(Exception):
    """The cluster cannot be run; the message says why and what to do."""


@dataclass(slots=True)
class Up:
    """A running local cluster. `connect` makes an admin client for bootstrap addresses."""

    layout: Layout
    signals: Signals
    connect: Connect
    tell: Callable[[str], None]
    on_ready: Callable[[], None]
    _lock: Lock = field(init=False)
    _store: Store = field(init=False)
    _supervisor: Supervisor = field(init=False)
    _loop: ClusterLoop = field(init=False)
    _looking: Background[LookResult] | None = None

    def run(self) -> None:
        """Run the cluster. Raises Stopped when a signal arrives, and UpError if it cannot go on."""
        self._lock = Lock(self.layout.lock)
        self._store = Store(self.layout)
        if not self._lock.take():
            raise UpError(f"{self._where()} is running already; stop it with `kavka down`")
        nodes = NodeProcesses(self.layout)
        directories = NodeDirectories(self.layout, read_cluster_id(self.layout.cluster_id, draw_id))
        self._supervisor = Supervisor(self.layout, self.signals, time.monotonic, self.tell, nodes, directories)
        platform = ExternalPlatform(self._supervisor, lambda name: read_secret(self.layout, name), time.monotonic)
        self._loop = ClusterLoop(
            self._store,
            platform,
            self.connect,
            self.tell,
            self.on_ready,
            time.monotonic,
            _now,
            secrets=LocalSecrets(self.layout),
        )
        try:
            self._introduce()
            nodes.stop_orphans(self.tell)
            while True:
                self._tend()
                self._turn()
                time.sleep(MOVING_TURN_SECONDS if self._supervisor.is_moving or self._looking else TURN_SECONDS)
        except HopelessError as error:
            raise UpError(str(error)) from None
        finally:
            self._leave()

    def _introduce(self) -> None:
        """Write which process runs the cluster, for `kavka down`."""
        write_whole(self.layout.supervisor, json.dumps({"pid": os.getpid()}) + "\n")

    def _tend(self) -> None:
        """Look after the nodes. A fault in it is told and noted."""
        try:
            if self._supervisor.tick():
                self._loop.hurry()
            self._loop.unexpected_errors.clear(NODES)
        except Exception as error:  # noqa: BLE001 - the brokers go on
            words = self._loop.unexpected_errors.note(NODES, error, _now(), self._store.stamp())
            with suppress(Exception):  # the state directory may be what has failed
                self._loop.show(words)

    def _turn(self) -> None:
        """Begin a look that is due, or follow one that is done."""
        if self._looking is None:
            if (question := self._loop.due()) is not None:
                self._looking = Background(lambda: self._loop.look(question))
        elif self._looking.is_done:
            result, self._looking = self._looking.result(), None
            self._loop.follow(result)

    def _leave(self) -> None:
        """Stop the nodes and clean up for the next `up`."""
        try:
            self._supervisor.stop()
            if self._looking is None:
                self._loop.close()
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
                if cluster.spec.external is not None:
                    self._store.set_status(cluster, external_status(cluster, None, None, plan, now))
                    continue
                wanted, places = self._supervisor.wanted(cluster), self._supervisor.places()
                status = cluster_status(cluster, View(wanted, places=places), PassResult(plan, now))
                self._store.set_status(cluster, status)

    def _where(self) -> str:
        return f'KafkaCluster "{self.layout.cluster}"'


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
