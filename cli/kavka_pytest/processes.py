"""Brokers of a test: `kavka up --ephemeral` in a directory of the test's own, and what a test does to them.

They run as processes, so that a test can kill and pause them. A broker that dies is started again by `kavka up`.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from kavka_pytest.brokers import Kafka, KafkaError, Leader

COMMAND: Final = (sys.executable, "-m", "kavka_cli")
ADMIN: Final = (sys.executable, "-m", "kavka_pytest.admin")
READY_SECONDS_MAX: Final = 120.0
COMMAND_SECONDS_MAX: Final = 120.0
STOP_SECONDS_MAX: Final = 60.0


class KafkaProcesses(Kafka):
    """Brokers as processes of their own."""

    where = "as a process of its own"

    def __init__(self, directory: Path, brokers: int = 1) -> None:
        super().__init__(f"kafka in {directory.name}")
        self._directory = directory
        self._brokers = brokers
        self._process: subprocess.Popen[bytes] | None = None
        self._found: dict[str, Any] = {}

    def _start(self) -> str:
        options = ("--ephemeral", "--port", "0", "--brokers", str(self._brokers), "-o", "json")
        with self._log_file.open("wb") as said:
            self._process = subprocess.Popen(
                [*COMMAND, "up", *options, *self._where], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said
            )
        self._found = json.loads(self._first_line(self._process))
        return self._servers

    @property
    def metrics(self) -> list[str]:
        """The URLs of the brokers' metrics pages."""
        return list(self._found["metrics"])

    def _create(self, name: str, partitions: int, config: dict[str, str]) -> None:
        ask(self._servers, {"create": name, "partitions": partitions, "configs": config})

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition."""
        leaders = ask(self._servers, {"leaders": topic})
        return int(leaders[str(partition)])

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

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        """The line that `kavka up` prints once it is ready. Raises KafkaError."""
        out: IO[bytes] | None = process.stdout
        assert out is not None, "its output is a pipe"
        ready, _, _ = select.select([out], [], [], READY_SECONDS_MAX)
        line = out.readline() if ready else b""
        if not line:
            words = "ended" if ready else f"was not ready within {READY_SECONDS_MAX:.0f} s"
            raise KafkaError(f"kavka up {words}:\n{self.log}")
        return line

    def _run(self, *words: str, text: str | None = None) -> str:
        """A command about this cluster. Raises KafkaError."""
        return _output([*COMMAND, *words, *self._where], text)

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
