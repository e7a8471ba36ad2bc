"""The nodes of a local cluster: started, watched, started again when they die, stopped in good order.

`tick` is called a few times a second and never blocks for long. A node that dies is started again after a pause that
doubles with each death in a row; one that dies `DEATHS_MAX` times without having run for `STEADY_SECONDS` in between
has failed, and stays down until its settings change. One that has never answered at all fails at its second death:
what keeps it from starting will not go away by itself. A restart is asked for and then goes on by itself, turn by turn,
so that the other nodes are looked after meanwhile. Where a node cannot even be started (a port in use, a volume that is
not there, no room for its files), it has failed with the reason and is tried again; the others go on.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kavka_operator.api.audit import AnalyticsStatus
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import OPEN
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import NodeState, SeenNode, SeenVolume, WantedNode
from kavka_operator.domain.plan import NodeAction, RestartNode, StartNode, StopNode
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.local import certificates, node_identity, probe, processes
from kavka_operator.platform.local.access import CertificatesError
from kavka_operator.platform.local.files import read_text, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_directories import NodeDirectories
from kavka_operator.platform.local.node_processes import STOP_SECONDS_MAX, NodeProcesses
from kavka_operator.platform.local.secrets import keep_audit_key
from kavka_operator.platform.local.server_properties import (
    LocalNode,
    fingerprint,
    former_node,
    local_nodes,
    wanted_node,
)
from kavka_operator.platform.local.signals import Signals
from kavka_operator.platform.local.unsupported import unsupported
from kavka_operator.platform.security import client_listeners
from kavka_operator.reconcile.volumes import forgotten

if TYPE_CHECKING:
    from kavka_operator.platform.certificates.maintenance import Kept

START_SECONDS_MAX = 60.0
PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 10.0
DEATHS_MAX = 6
FIRST_DEATHS_MAX = 2
STEADY_SECONDS = 30.0
NOT_HERE = AnalyticsStatus(
    state="Refused",
    message="spec.audit.analytics runs on Kubernetes alone; here, ask the trail by `kavka audit run --directory DIR`",
)


@dataclass(slots=True)
class Running:
    """A node that was started, or could not be. `state` follows the process."""

    node: LocalNode
    fingerprint: str
    process: subprocess.Popen[bytes] | None  # none: it could not be started
    started: float
    state: NodeState = "Starting"
    restarts: int = 0
    deaths: int = 0
    has_answered: bool = False
    retry_at: float = 0.0
    stop_by: float = 0.0
    message: str = ""
    is_leaving: bool = False  # it is not started again


@dataclass(slots=True)
class Supervisor:
    """A `Platform`: nodes are processes of this machine."""

    layout: Layout
    signals: Signals
    clock: Callable[[], float]
    tell: Callable[[str], None]
    node_processes: NodeProcesses
    _directories: NodeDirectories
    _wanted: dict[int, LocalNode] = field(default_factory=dict)
    _nodes: dict[int, Running] = field(default_factory=dict)
    moves: int = 0  # counts the changes of any node's state, so that a look can tell whether it is out of date

    def look(self, cluster: KafkaCluster) -> View:
        """The nodes as they are wanted and seen now."""
        if problem := unsupported(cluster, self.layout, node_identity.read(self.layout)):
            return View(seen=self.seen(), refusal=problem, stamp=self.moves)
        wanted = self.wanted(cluster)
        try:
            kept = self._certified(cluster)
        except CertificatesError as error:
            return View(seen=self.seen(), refusal=f"{cluster.identity}: {error}", stamp=self.moves)
        return View(
            wanted=wanted,
            seen=self.seen(),
            volumes=self.volumes(),
            leaving=self.leaving(),
            places=self.places(),
            outside=self.begins(cluster),
            metrics=self.metrics_addresses(),
            bootstrap=",".join(self.addresses()),
            pools=node_identity.read(self.layout).pools,
            stamp=self.moves,
            analytics=NOT_HERE if cluster.spec.analytics is not None else None,
            security=kept.security if kept is not None else OPEN,
            certificates=kept.seen if kept is not None else None,
        )

    def _certified(self, cluster: KafkaCluster) -> "Kept | None":
        """Keep the certificates of a secured cluster in force; None for another. Raises CertificatesError."""
        if not cluster.spec.is_secured:
            return None
        known = {number: running.node for number, running in self._nodes.items()} | self._wanted
        names = {number: {*certificates.LOCAL_NAMES, *node.hosts} for number, node in known.items()}
        nodes = [running.node for running in self._nodes.values() if running.state == "Running"]
        running = [(host, int(port)) for host, _, port in (node.address.rpartition(":") for node in nodes)]
        return certificates.keep(cluster, self.layout, names, running, datetime.now(UTC))

    def wanted(self, cluster: KafkaCluster) -> Sequence[WantedNode]:
        """The nodes that the resource wants. `perform` starts them as they were told here."""
        known = node_identity.read(self.layout)
        host = cluster.spec.listeners[0].host or node_identity.HOST
        now = known.joined_by(cluster, lambda port: not probe.port_is_taken(host, port))
        if now != known:
            node_identity.keep(self.layout, now)
        if cluster.spec.is_audited:
            keep_audit_key(self.layout)
        self._wanted = {node.id: node for node in local_nodes(cluster, self.layout, now)}
        self._directories.given_up = forgotten(cluster)
        return [wanted_node(node) for node in self._wanted.values()]

    def volumes(self) -> Mapping[int, Sequence[SeenVolume]]:
        """The log directories of the wanted nodes, as they lie on the disk."""
        return {number: self._directories.seen(number) for number in self._wanted}

    def seen(self) -> Mapping[int, SeenNode]:
        """The nodes that were started, and those that once were and are no longer wanted."""
        former = {number: SeenNode(number, "Stopped") for number in self._former()}
        return former | {number: self._seen(number, running) for number, running in self._nodes.items()}

    def _former(self) -> list[int]:
        known = node_identity.read(self.layout).offsets
        return [number for number in known if number not in self._wanted and self.layout.properties(number).exists()]

    def leaving(self) -> list[WantedNode]:
        """The nodes that run and are no longer wanted."""
        return [wanted_node(running.node) for number, running in self._nodes.items() if number not in self._wanted]

    def _seen(self, number: int, running: Running) -> SeenNode:
        wanted = self._wanted.get(number)
        changed = wanted.changed(running.node.properties) if wanted is not None else ()
        return SeenNode(number, running.state, running.fingerprint, running.restarts, running.message, changed)

    def places(self) -> Mapping[int, tuple[str, str]]:
        """Address and directory of each node that is wanted, or runs all the same."""
        nodes = {number: running.node for number, running in self._nodes.items()} | self._wanted
        return {number: (node.told, str(self.layout.data(number))) for number, node in nodes.items()}

    def begins(self, cluster: KafkaCluster) -> Mapping[str, str]:
        """The addresses of each listener for clients, of a secured cluster: they do not all speak the same."""
        if not cluster.spec.is_secured:
            return {}
        told = [node.advertised for node in self._wanted.values() if node.node.is_broker]
        listeners = client_listeners(cluster)
        return {
            listener.name: ",".join(addresses[place] for addresses in told) for place, listener in enumerate(listeners)
        }

    def addresses(self) -> list[str]:
        """The addresses of running brokers."""
        nodes = [running.node for running in self._nodes.values() if running.state == "Running"]
        return [node.address for node in nodes if node.node.is_broker]

    def metrics_addresses(self) -> Mapping[int, str]:
        """The addresses of the running nodes' metrics pages."""
        nodes = {number: running.node for number, running in self._nodes.items() if running.state == "Running"}
        return {number: node.metrics for number, node in nodes.items() if node.metrics is not None}

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        """Change nothing: a process can be ended without a question."""
        return False

    def perform(self, action: NodeAction) -> None:
        """Start or restart a node; `seen` tells when it runs."""
        self.moves += 1
        match action:
            case StartNode(node=number):
                if node := self._wanted.get(number) or former_node(self.layout, number):
                    self._begin(node)
            case StopNode(node=number):
                self.tell(str(action))
                self._nodes[number].is_leaving = True
                self._end(self._nodes[number])
            case RestartNode(node=number):
                running = self._nodes[number]
                self.tell(str(action))
                self._end(running)

    def _end(self, running: Running) -> None:
        if running.process is not None:
            running.process.terminate()
        running.state, running.stop_by, running.message = "Stopping", self.clock() + STOP_SECONDS_MAX, ""

    @property
    def is_moving(self) -> bool:
        """Whether a node is on its way up or down, so that looking often is worth it."""
        return any(running.state in {"Starting", "Stopping", "Restarting"} for running in self._nodes.values())

    def tick(self) -> bool:
        """Look after the nodes; whether the state of one has changed. Raises a fault once all were looked after."""
        changed, fault = 0, None
        for number in list(self._nodes):
            try:
                changed += self._look_after(number, self._nodes[number])
            except Exception as error:  # noqa: BLE001 - raised again once the other nodes are looked after
                fault = error
        self.moves += changed
        if fault is not None:
            raise fault
        return changed > 0

    def stop(self) -> None:
        """Stop every node, all together: no broker is left to lead partitions when the whole cluster stops."""
        alive = [running.process for running in self._nodes.values() if running.process is not None]
        try:
            processes.stop_children(alive, STOP_SECONDS_MAX)
        finally:
            for number in self._nodes:
                self.layout.pid(number).unlink(missing_ok=True)
            self._nodes.clear()

    def _begin(self, node: LocalNode) -> None:
        """Start a node, or note why it cannot be started and when to try again."""
        before = self._nodes.get(node.id)
        try:
            self._start(node)
        except (PlatformUnavailableError, OSError) as error:
            failures = before.deaths if before is not None and before.process is None else 0
            if not failures or before is None or before.message != str(error):
                self.tell(f"node {node.id}: {error}")
            failed = Running(node, fingerprint(node), None, self.clock(), "Failed", message=str(error))
            failed.deaths, failed.retry_at = failures + 1, self.clock() + _pause(failures)
            self._nodes[node.id] = failed
        if before is not None:
            self._nodes[node.id].restarts = before.restarts

    def _start(self, node: LocalNode) -> None:
        """Format a node if it is new, and start it. Raises PlatformUnavailableError."""
        for port in node.ports:
            if probe.port_is_taken(node.host, port):
                raise PlatformUnavailableError(
                    f"port {port} of {node.host} is in use by another program; stop that one, or choose another port"
                    " in the resource"
                )
        if words := self._directories.fault(node):
            raise PlatformUnavailableError(words)
        write_whole(self.layout.properties(node.id), node.properties)
        self._directories.prepare(node)
        with self.signals.held():
            self._nodes[node.id] = Running(node, fingerprint(node), self.node_processes.start(node.id), self.clock())

    def _look_after(self, number: int, running: Running) -> bool:
        before = running.state
        now = self.clock()
        if running.state == "Stopping":
            self._wait_for_the_end(number, running, now)
        elif running.process is None:
            if now >= running.retry_at:
                self._begin(self._wanted.get(number, running.node))
        elif running.state in {"Starting", "Running"} and running.process.poll() is not None:
            self._died(running, running.process, now)
        elif running.state == "Starting":
            self._wait_for_answer(running, running.process, now)
        elif running.state == "Restarting" and now >= running.retry_at:
            self._start_again(running, now)
        elif running.state == "Running" and running.deaths and now - running.started > STEADY_SECONDS:
            running.deaths, running.message = 0, ""
        return number not in self._nodes or self._nodes[number].state != before

    def _start_again(self, running: Running, now: float) -> None:
        """Start a node that has died, with the settings that it had."""
        if self._directories.fault(running.node):
            self._begin(running.node)  # says why not, and tries again
            return
        with self.signals.held():
            running.process, running.started, running.state = (
                self.node_processes.start(running.node.id),
                now,
                "Starting",
            )

    def _wait_for_the_end(self, number: int, running: Running, now: float) -> None:
        """Start a node again once its process has ended, with the settings wanted now, or as it was."""
        if running.process is not None and running.process.poll() is None:
            if now > running.stop_by:
                self.tell(f"node {number} did not stop within {STOP_SECONDS_MAX:.0f} s and is killed")
                running.process.kill()
                running.stop_by = now + STOP_SECONDS_MAX
            return
        if running.is_leaving:
            self.layout.pid(number).unlink(missing_ok=True)
            del self._nodes[number]
            return
        node = self._wanted.get(number, running.node)
        if words := self._directories.fault(node):
            self.tell(f"node {number} keeps its former settings: {words}")
            node = running.node
        self._begin(node)

    def _wait_for_answer(self, running: Running, process: subprocess.Popen[bytes], now: float) -> None:
        host, _, port = running.node.address.rpartition(":")
        context = certificates.context(self.layout) if running.node.is_secured else None
        if probe.answers(host, int(port), context=context):
            running.state, running.has_answered = "Running", True
            self.tell(f"node {running.node.id} answers on {running.node.address} (pid {process.pid})")
        elif now - running.started > START_SECONDS_MAX:
            process.kill()
            running.message = f"did not answer within {START_SECONDS_MAX:.0f} s"

    def _died(self, running: Running, process: subprocess.Popen[bytes], now: float) -> None:
        running.deaths += 1
        running.restarts += 1
        log = self.layout.log(running.node.id)
        running.message = f"{_ending(process.returncode)}; see {log}"
        if running.deaths >= (DEATHS_MAX if running.has_answered else FIRST_DEATHS_MAX):
            running.state = "Failed"
            running.message = f"died {running.deaths} times in a row, last: {processes.tail(log, 1)}; see {log}"
            self.tell(f"node {running.node.id} {running.message}")
            return
        pause = _pause(running.deaths - 1)
        running.state, running.retry_at = "Restarting", now + pause
        self.tell(f"node {running.node.id} {_ending(process.returncode)}; starting it again in {pause:.1f} s")


def _pause(failures: int) -> float:
    """Seconds to wait after so many failures in a row before this one."""
    return min(PAUSE_SECONDS_MIN * 2.0 ** min(failures, 16), PAUSE_SECONDS_MAX)


def _ending(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"


def read_cluster_id(path: Path, draw: Callable[[], str]) -> str:
    """The id of the cluster, drawn at the first start and kept."""
    known = (read_text(path) or "").strip()
    if not known:
        known = draw()
        write_whole(path, known + "\n")
    return known
