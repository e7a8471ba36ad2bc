"""Brokers of a test: `kavka up --ephemeral` in a directory of the test's own, and what a test does to them.

They run as processes, so that a test can kill and pause them. A broker that dies is started again by `kavka up`.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from kavka_pytest.brokers import Kafka, KafkaError, Leader
from kavka_pytest.harmed_nodes import HarmedNodes
from kavka_pytest.leaders import leader_known_to
from kavka_pytest.node_faults import VARIABLE

COMMAND: Final = (sys.executable, "-m", "kavka_cli")
UP: Final = (sys.executable, "-m", "kavka_pytest.up_with_faults", "up")
ADMIN: Final = (sys.executable, "-m", "kavka_pytest.admin")
READY_SECONDS_MAX: Final = 120.0
COMMAND_SECONDS_MAX: Final = 120.0
STOP_SECONDS_MAX: Final = 60.0
LEADER_SECONDS_MAX: Final = 60.0
LISTENERS: Final = re.compile(r"^listeners=(.*)$", re.MULTILINE)
PORT: Final = re.compile(r":(\d+)(?:,|$)")


class KafkaProcesses(Kafka):
    """Brokers as processes of their own."""

    where = "as a process of its own"

    def __init__(self, directory: Path, brokers: int = 1) -> None:
        super().__init__(f"kafka in {directory.name}")
        self._directory = directory
        self._brokers = brokers
        self._process: subprocess.Popen[bytes] | None = None
        self._found: dict[str, Any] = {}
        self._harmed = HarmedNodes(directory, self._ports)
        self.faults.when_cleared(self._harmed.heal_all)

    def _start(self) -> str:
        options = ("--ephemeral", "--port", "0", "--brokers", str(self._brokers), "-o", "json")
        with self._log_file.open("wb") as said:
            self._process = subprocess.Popen(
                [*UP, *options, *self._where],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env={**os.environ, VARIABLE: str(self._directory)},
            )
        self._found = json.loads(first_line(self._process, self._log_file))
        return self._servers

    @property
    def metrics(self) -> list[str]:
        """The URLs of the brokers' metrics pages."""
        return list(self._found["metrics"])

    def _create(self, name: str, partitions: int, config: dict[str, str]) -> None:
        ask(self._servers, {"create": name, "partitions": partitions, "configs": config})

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition. One that is isolated or cannot write its metadata log is not asked: what it
        knows is old. Raises KafkaError where none of the others knows in time.
        """
        old = {port for node in self._harmed.isolated | self._harmed.full for port in self._ports()[node]}
        servers = [server for server in self._servers.split(",") if int(server.rpartition(":")[2]) not in old]
        leader = leader_known_to(servers or self._servers.split(","), topic, partition, LEADER_SECONDS_MAX)
        if leader is None:
            raise KafkaError(f"no broker that can know names a leader of partition {partition} of topic {topic}")
        return leader

    def kill(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Kill a broker (SIGKILL): a node, or the leader of a topic's first partition, or of (topic, partition). It is
        started again after a tenth of a second. Returns the node.
        """
        return self._signal(signal.SIGKILL, node, leader_of)

    def pause(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Have a broker do nothing until `resume` (SIGSTOP), as where its machine hangs. Returns the node."""
        return self._signal(signal.SIGSTOP, node, leader_of)

    def resume(self, node: int) -> None:
        """Let a broker go on that was paused."""
        self._signal(signal.SIGCONT, node, None)

    def isolate(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Cut a broker off from the others, and them from it; see `Kafka`. Raises KafkaError."""
        if self._brokers == 1:
            return super().isolate(node, leader_of=leader_of)
        return self._harmed.harm(self._harmed.isolated, self._node_of(node, leader_of))

    def fill_disk(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Leave a broker no room on its disk; see `Kafka`. Raises KafkaError."""
        return self._harmed.harm(self._harmed.full, self._node_of(node, leader_of))

    def mend(self, node: int) -> None:
        """Take from a broker what `cut`, `isolate` and `fill_disk` did to it."""
        super().mend(node)
        self._harmed.heal(node)

    def restart(self) -> None:
        """Restart all brokers one by one, as in an upgrade: by controlled shutdown. Returns once all are back."""
        self._run("restart", self._cluster)
        self._run("wait", f"kvc/{self._cluster}", "--for=condition=Ready", "--timeout", "120s")

    def _limit(self, client_id: str, limits: dict[str, str | None]) -> None:
        name = f"throttle-{uuid4().hex[:8]}"
        quota = {
            "apiVersion": "kavka.dev/v1alpha1",
            "kind": "ClientQuota",
            "metadata": {"name": name},
            "spec": {
                "clusterRef": {"name": self._cluster},
                "entity": {"clientId": {"name": client_id}},
                "limits": {key: rate for key, rate in limits.items() if rate is not None},
            },
        }
        self._run("apply", "-f", "-", text=json.dumps(quota))
        self._run("wait", f"kvq/{name}", "--for=condition=Ready", "--timeout", "60s")

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pid in self._pids().values():
            _send(pid, signal.SIGCONT)  # one that is paused would not stop
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    @property
    def _cluster(self) -> str:
        return str(self._found["cluster"])

    @property
    def _servers(self) -> str:
        """The brokers' own addresses, for what the fixture does itself: faults are not for that."""
        return str(self._found["bootstrapServers"])

    @property
    def log(self) -> str:
        """The messages of `kavka up`: when nodes died and answered again, and why."""
        return self._log_file.read_text(errors="replace")

    @property
    def _log_file(self) -> Path:
        return self._directory / "up.log"

    @property
    def _where(self) -> tuple[str, str]:
        return ("--state-dir", str(self._directory / "state"))

    def _run(self, *words: str, text: str | None = None) -> str:
        """A command about this cluster. Raises KafkaError."""
        return _output([*COMMAND, *words, *self._where], text)

    def _ports(self) -> dict[int, list[int]]:
        """The ports that each node listens on, its controller's among them."""
        files = Path(self._found["stateDirectory"]).glob("config/node-*.properties")
        return {int(file.stem.removeprefix("node-")): ports_of(file.read_text()) for file in files}

    def _pids(self) -> dict[int, int]:
        """The process of each node that runs."""
        files = Path(str(self._found.get("stateDirectory", self._directory))).glob("node-*.pid")
        return {int(file.stem.removeprefix("node-")): int(file.read_text()) for file in files}

    def _signal(self, what: signal.Signals, node: int | None, leader_of: Leader | None) -> int:
        node = self._node_of(node, leader_of)
        pids = self._pids()
        if node not in pids:
            raise KafkaError(f"node {node} does not run; there are {', '.join(map(str, sorted(pids)))}")
        _send(pids[node], what)
        return node


def first_line(process: subprocess.Popen[bytes], log: Path) -> bytes:
    """The line that `kavka up` prints once it is ready. Raises KafkaError."""
    out: IO[bytes] | None = process.stdout
    assert out is not None, "its output is a pipe"
    ready, _, _ = select.select([out], [], [], READY_SECONDS_MAX)
    line = out.readline() if ready else b""
    if not line:
        words = "ended" if ready else f"was not ready within {READY_SECONDS_MAX:.0f} s"
        raise KafkaError(f"kavka up {words}:\n{log.read_text(errors='replace')}")
    return line


def ports_of(properties: str) -> list[int]:
    """The ports of the listeners in a server.properties."""
    found = LISTENERS.search(properties)
    return [int(port) for port in PORT.findall(found[1].replace("\\", ""))] if found else []


def ask(bootstrap_servers: str, question: dict[str, Any]) -> Any:
    """The answer of `kavka_pytest.admin`. Raises KafkaError."""
    return json.loads(_output([*ADMIN, bootstrap_servers, json.dumps(question)]))


def _output(command: list[str], text: str | None = None) -> str:
    """The output of a program. Raises KafkaError."""
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS_MAX)
    if ran.returncode != 0:
        raise KafkaError(f"{' '.join(command[2:])}: {ran.stderr or ran.stdout}")
    return ran.stdout


def _send(pid: int, what: signal.Signals) -> None:
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return  # it has ended meanwhile
