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
from types import TracebackType
from typing import IO, Any, Final, Self
from uuid import uuid4

COMMAND: Final = (sys.executable, "-m", "kavka_cli")
ADMIN: Final = (sys.executable, "-m", "kavka_pytest.admin")
READY_SECONDS_MAX: Final = 120.0
COMMAND_SECONDS_MAX: Final = 120.0
STOP_SECONDS_MAX: Final = 60.0


class KafkaError(Exception):
    """Brokers did not do what a test asked of them; the message is theirs."""


class Kafka:
    """A running Kafka. Where a client wants bootstrap servers, `str(kafka)` is them as well."""

    def __init__(self, directory: Path, brokers: int = 1) -> None:
        self._directory = directory
        self._brokers = brokers
        self._process: subprocess.Popen[bytes] | None = None
        self._found: dict[str, Any] = {}

    def __enter__(self) -> Self:
        options = ("--ephemeral", "--port", "0", "--brokers", str(self._brokers), "-o", "json")
        said = self._said.open("wb")
        with said:
            self._process = subprocess.Popen(
                [*COMMAND, "up", *options, *self._where], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said
            )
        try:
            self._found = json.loads(self._first_line(self._process))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __str__(self) -> str:
        return self.bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers: host:port, separated by commas."""
        return str(self._found["bootstrapServers"])

    @property
    def metrics(self) -> list[str]:
        """The URLs of the brokers' metrics pages."""
        return list(self._found["metrics"])

    @property
    def log(self) -> str:
        """The messages of `kavka up`: when nodes died and answered again, and why."""
        return self._said.read_text(errors="replace")

    def topic(self, name: str | None = None, *, partitions: int = 1, **config: str | int) -> str:
        """Make a topic, by default under a name that no other test has; returns its name. `config` are topic configs,
        with underscores for dots: `retention_ms=1000`.
        """
        name = name or f"test-{uuid4().hex[:12]}"
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        self._ask({"create": name, "partitions": partitions, "configs": settings})
        return name

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition."""
        leaders = self._ask({"leaders": topic})
        return int(leaders[str(partition)])

    def kill(self, node: int | None = None, *, leader_of: str | tuple[str, int] | None = None) -> int:
        """Kill a broker (SIGKILL): a node, or the leader of a topic's first partition, or of (topic, partition). It is
        started again after a tenth of a second. Returns the node.
        """
        return self._signal(signal.SIGKILL, node, leader_of)

    def pause(self, node: int | None = None, *, leader_of: str | tuple[str, int] | None = None) -> int:
        """Have a broker do nothing until `resume` (SIGSTOP), as where its machine hangs. Returns the node."""
        return self._signal(signal.SIGSTOP, node, leader_of)

    def resume(self, node: int) -> None:
        """Let a broker go on that was paused."""
        self._signal(signal.SIGCONT, node, None)

    def restart(self) -> None:
        """Restart all brokers one by one, as in an upgrade: by controlled shutdown. Returns once all are back."""
        self._run("restart", self._cluster)
        self._run("wait", f"kvc/{self._cluster}", "--for=condition=Ready", "--timeout", "120s")

    def throttle(self, client_id: str, *, produce: str | None = None, fetch: str | None = None) -> None:
        """Limit the rate of a client on each broker, in bytes a second as resources write them: `produce="1Mi"`."""
        limits = {"producerByteRate": produce, "consumerByteRate": fetch}
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

    def stop(self) -> None:
        """Stop the brokers and remove their records. To be called twice is no error."""
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
    def _said(self) -> Path:
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

    def _ask(self, question: dict[str, Any]) -> Any:
        """The answer of `kavka_pytest.admin`. Raises KafkaError."""
        return json.loads(_output([*ADMIN, self.bootstrap_servers, json.dumps(question)]))

    def _pids(self) -> dict[int, int]:
        """The process of each node that runs."""
        files = Path(str(self._found.get("stateDirectory", self._directory))).glob("node-*.pid")
        return {int(file.stem.removeprefix("node-")): int(file.read_text()) for file in files}

    def _signal(self, what: signal.Signals, node: int | None, leader_of: str | tuple[str, int] | None) -> int:
        if (node is None) == (leader_of is None):
            raise ValueError("name a node, or leader_of=TOPIC")
        if leader_of is not None:
            node = self.leader(leader_of) if isinstance(leader_of, str) else self.leader(*leader_of)
        assert node is not None, "one of the two is given"
        pids = self._pids()
        if node not in pids:
            raise KafkaError(f"node {node} does not run; there are {', '.join(map(str, sorted(pids)))}")
        _send(pids[node], what)
        return node


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
