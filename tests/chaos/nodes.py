"""A cluster of real processes: Kavka's, or Apache Kafka's as the measure of the harness itself.

Every node is broker and controller in a rack of its own, formatted with all of them as voters. A node can be killed,
paused, stopped, and started again; it keeps its address and its directory.
"""

import base64
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.chaos import proxy
from tests.chaos.disks import Disk
from tests.chaos.network import Network, dying_with_us
from tests.support.servers import LOG4J, format_directory
from tests.support.wire import LOOK_SECONDS_MAX, brokers_registered
from tools.kafka_jars import class_path

CLUSTER_ID: Final = "a2F2a2EtY2hhb3MtY2x1c3"
KAVKA: Final = "kavka"
APACHE_KAFKA: Final = "apache-kafka"
READY_SECONDS_MAX: Final = 240.0
STOP_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.05
LINES_SHOWN: Final = 40
#: Of the log directories; the metadata is in the first.
DISKS: Final = ("disk", "more")
#: A slow node runs for the first of these seconds, and then stands still for the second.
RUNS_SECONDS: Final = 0.01
STANDS_SECONDS: Final = 0.09
SEGMENT_BYTES: Final = 4 * 1024 * 1024

#: What makes faults bite: small segments, short sessions, internal topics with as many replicas as the others.
SETTINGS: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": str(SEGMENT_BYTES),
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "replica.lag.time.max.ms": "6000",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
}


def directory_id(node_id: int) -> str:
    """The id of a node's log directory, as Kafka writes ids."""
    return base64.urlsafe_b64encode(b"chaos directory" + bytes([node_id])).decode().rstrip("=")


@dataclass(slots=True)
class Node:
    """One process, or the place where it will run again."""

    node_id: int
    directory: Path
    program: list[str]
    address: tuple[str, int]
    disks: list[Disk]
    process: subprocess.Popen[bytes] | None = None
    is_paused: bool = False
    is_slow: bool = False

    @property
    def has_own_disks(self) -> bool:
        return all(disk.is_own for disk in self.disks)

    @property
    def control(self) -> Path:
        """Where the proxy before its controller takes orders."""
        return self.directory / "proxy"

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    @property
    def pid(self) -> int:
        assert self.process is not None, f"node {self.node_id} does not run"
        return self.process.pid

    def start(self) -> None:
        """Start it; `Cluster.wait_ready` waits."""
        assert self.process is None, f"node {self.node_id} runs already"
        with self.log.open("ab") as log:
            command = [*dying_with_us(), *self.program]
            self.process = subprocess.Popen(
                command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """SIGKILL, paused or not."""
        self._end(signal.SIGKILL)

    def stop(self) -> float:
        """SIGTERM; the seconds until it was gone."""
        began = time.monotonic()
        self._end(signal.SIGTERM)
        return time.monotonic() - began

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(how)
        if self.is_paused:
            process.send_signal(signal.SIGCONT)
            self.is_paused = False
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"node {self.node_id} runs on {STOP_SECONDS_MAX:g} s after {how.name}") from None

    def pause(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def slow_down(self) -> None:
        """Give it a tenth of its time until `resume`."""
        self.is_slow = True
        threading.Thread(target=self._dawdle, args=(self.process,), daemon=True).start()

    def _dawdle(self, process: subprocess.Popen[bytes] | None) -> None:
        while process is not None and self.is_slow and process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(STANDS_SECONDS)
            process.send_signal(signal.SIGCONT)
            time.sleep(RUNS_SECONDS)

    def mend(self) -> None:
        """Make its disks what they were. A process that has seen them fail is ended first, or has ended itself."""
        self.is_slow = False
        if self.is_gone() and self.has_own_disks:
            self.process = None  # the supervisor starts it again, as Kubernetes would
        if any(disk.is_failing or disk.is_hidden for disk in self.disks):
            self.kill()
        for disk in self.disks:
            disk.mend()
            disk.make_room()

    def is_gone(self) -> bool:
        """Whether it ended by itself."""
        return self.process is not None and self.process.poll() is not None

    def brokers_known(self) -> int:
        """How many brokers it names to clients; 0 where it does not answer."""
        try:
            return brokers_registered(self.address, LOOK_SECONDS_MAX)
        except OSError:
            return 0

    def last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LINES_SHOWN:])


@dataclass(slots=True)
class Cluster:
    """All nodes, and what lies between them."""

    product: str
    network: Network
    nodes: list[Node] = field(default_factory=list)
    proxies: list[subprocess.Popen[bytes]] = field(default_factory=list)
    # The nodes that a fault has slowed down: others must not feel it.
    struck: tuple[int, ...] = ()
    # The lock of every vote's removal; a voter that has forgotten something does not vote, so no other is removed then.
    voting: threading.Lock = field(default_factory=threading.Lock)
    are_votes_kept: bool = False
    without_vote: Node | None = None

    def keep_votes(self) -> bool:
        """Keep votes from being taken until all is whole again; False where one is taken already."""
        with self.voting:
            self.are_votes_kept = self.without_vote is None
        return self.are_votes_kept

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in (node.address for node in self.nodes))

    def node(self, node_id: int) -> Node:
        return next(node for node in self.nodes if node.node_id == node_id)

    def start_all(self) -> None:
        """Start those that do not run, heal everything, and wait until all serve."""
        self.network.heal()
        self.struck = ()
        for node in self.nodes:
            node.mend()
            if node.is_gone():
                raise AssertionError(f"node {node.node_id} ended by itself:\n{node.last_lines()}")
            if node.is_paused:
                node.resume()
            if node.process is None:
                node.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Until every node answers, and knows of all."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        for node in self.nodes:
            while node.brokers_known() < len(self.nodes):
                if node.is_gone():
                    raise AssertionError(f"node {node.node_id} ended by itself:\n{node.last_lines()}")
                if time.monotonic() > deadline:
                    known = node.brokers_known()
                    raise AssertionError(f"node {node.node_id} knows of {known} brokers:\n{node.last_lines()}")
                time.sleep(POLL_SECONDS)

    # --- the proxies before the controllers ---------------------------------------------------------------------

    def hold(self, node: Node, key: int | None) -> None:
        """Hold back what this node sends to controllers from now on, from a request with this API key on."""
        self._tell(f"hold {node.address[0]} {proxy.ANY if key is None else key}")

    def let(self, node: Node) -> None:
        """Pass on what this node sends on new connections."""
        self._tell(f"let {node.address[0]}")

    def held(self) -> int:
        """How many bytes are held back."""
        return sum(map(int, self._tell("held")))

    def deliver(self) -> None:
        """Pass on what was held back."""
        self._tell("deliver")

    def _tell(self, command: str) -> list[str]:
        return [proxy.tell(node.control, command) for node in self.nodes]

    def start_proxies(self) -> None:
        """Where nodes have addresses of their own."""
        for node in self.nodes if self.network.can_cut else ():
            host, port = self.network.controller_address(node.node_id)
            where = [host, str(port), str(self.network.listening_port(node.node_id)), str(node.control)]
            command = [*dying_with_us(), *self.network.prefix(node.node_id), sys.executable, "-m", "tests.chaos.proxy"]
            self.proxies.append(subprocess.Popen([*command, *where], stdin=subprocess.DEVNULL))

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
            for disk in node.disks:
                disk.close()
        for one in self.proxies:
            one.kill()
            one.wait()
        self.network.close()


def make_cluster(
    product: str, node_ids: Sequence[int], network: Network, root: Path, settings: Mapping[str, str] | None = None
) -> Cluster:
    """Formatted nodes in `root`, none of them started."""
    cluster = Cluster(product, network)
    for node_id in node_ids:
        directory = root / f"node-{node_id}"
        directory.mkdir(parents=True)
        disks = [Disk(directory / name, directory / f"{name}.image") for name in DISKS]
        for disk in disks:
            disk.make()
        properties = properties_of(node_id, node_ids, network, directory, settings or {})
        program = _prepare(product, node_id, node_ids, network, directory, properties)
        cluster.nodes.append(
            Node(node_id, directory, [*network.prefix(node_id), *program], network.address(node_id), disks)
        )
    cluster.start_proxies()
    return cluster


def properties_of(
    node_id: int, node_ids: Sequence[int], network: Network, directory: Path, settings: Mapping[str, str]
) -> Path:
    """Write server.properties of one node; its path."""
    controllers = ",".join(text(network.controller_address(other)) for other in node_ids)
    broker, controller = text(network.address(node_id)), network.controller_address(node_id)
    bound = f"{controller[0]}:{network.listening_port(node_id)}"
    values = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "broker.rack": f"rack-{node_id}",
        "controller.quorum.bootstrap.servers": controllers,
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{bound}",
        "advertised.listeners": f"PLAINTEXT://{broker},CONTROLLER://{text(controller)}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": ",".join(str(directory / name / "data") for name in DISKS),
        "metadata.log.dir": str(directory / DISKS[0] / "data"),
        **SETTINGS,
        **settings,
    }
    path = directory / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def _prepare(
    product: str, node_id: int, node_ids: Sequence[int], network: Network, directory: Path, properties: Path
) -> list[str]:
    """Format the node's directory; the command that runs it."""
    voters = ",".join(f"{other}@{text(network.controller_address(other))}:{directory_id(other)}" for other in node_ids)
    if product == KAVKA:
        with properties.open("a") as file:
            file.write("kavka.admin.listener=\n")
        program = [sys.executable, "-m", "kavka_broker"]
        how = ["--config", str(properties), "--cluster-id", CLUSTER_ID, "--initial-controllers", voters]
        format_directory([*program, "format", *how], directory)
        return [*program, "run", "--config", str(properties)]
    logging = directory / "log4j2.properties"
    logging.write_text(LOG4J)
    java = ["java", "-Xmx384M", "-XX:+UseSerialGC", "-XX:-UsePerfData", f"-Dlog4j2.configurationFile={logging}"]
    program = [*java, f"-Dkafka.logs.dir={directory}", "-cp", class_path()]
    how = ["-t", CLUSTER_ID, "-c", str(properties), "--initial-controllers", voters]
    format_directory([*program, "kafka.tools.StorageTool", "format", *how], directory)
    return [*program, "kafka.Kafka", str(properties)]


def text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"
