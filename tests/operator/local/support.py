"""`kavka` as a person runs it: real processes, a state directory of the test's own, ports that nobody else has.

A command that ends runs in the process of the test: a process for each would spend a second of a processor on imports,
and tests ask `kavka get` a hundred times. `up` is always a process, as is what `start` and `run_as_process` run.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kavka_cli import main
from kavka_operator.platform.local.probe import port_is_taken
from tests.support.commands import run_here
from tests.support.servers import PORTS
from tests.support.waiting import until_outside

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 120.0
PORT_STEP = 10
_LATELY = deque[int](maxlen=300)  # ports that were given


def wait_until(holds: Callable[[], bool], what: str, seconds: float = SECONDS_MAX) -> None:
    until_outside(holds, seconds, what)


def free_ports(count: int) -> list[int]:
    """Ports that are free now, as are those behind them up to the next, `PORT_STEP` apart; of those of this suite. None
    was given lately: who has it may not listen yet.
    """
    room = PORT_STEP * count
    while True:
        # Numbers of `random` itself begin anew with each test.
        first = random.SystemRandom().randrange(PORTS.start, PORTS.stop - room, PORT_STEP)
        found = range(first, first + room, PORT_STEP)
        is_taken = any(port_is_taken("127.0.0.1", port) for port in range(first, first + room))
        if not is_taken and set(_LATELY).isdisjoint(found):
            break
    _LATELY.extend(found)
    return list(found)


def hears_ctrl_c() -> None:
    """Where the tests themselves run in the background a shell has them ignore it, and their children with them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Kavka:
    """The command, with everything it leaves below one directory."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.directory = directory
        self.port, self.controller_port, self.metrics_port = free_ports(3)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.access: dict[str, str | int | float | bool] = {}  # what librdkafka needs to be let in
        self.started: list[subprocess.Popen[str]] = []

    @property
    def cluster(self) -> Path:
        return self.state / "default" / "quickstart"

    def file(
        self,
        name: str = "cluster.yaml",
        *,
        brokers: int = 1,
        replicas: int = 1,
        config: str = "{}",
        more: str = "",
        pools: str = "",
    ) -> Path:
        """The quickstart with ports of our own, and as many brokers as a test needs, each in a rack of its own."""
        racks = [f"rack-{number}" for number in range(brokers)] if brokers > 1 else []
        pools = pools or f"[{{name: nodes, replicas: {brokers}, racks: {racks}}}]"
        path = self.directory / name
        path.write_text(f"""\
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata:
  name: quickstart
spec:
  nodePools: {pools}
  metrics: {{port: {self.metrics_port}}}
  listeners:
    - {{name: PLAINTEXT, port: {self.port}}}
    - {{name: CONTROLLER, port: {self.controller_port}}}
  config: {config}
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata:
  name: flights
spec:
  clusterRef: {{name: quickstart}}
  partitions: {2 * brokers}
  replicationFactor: {replicas}
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata:
  name: backfill
spec:
  clusterRef: {{name: quickstart}}
  entity: {{clientId: {{name: backfill}}}}
  limits: {{producerByteRate: 1Mi}}
{more}""")
        return path

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on; its output is in `output`."""
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                self.command(*words), stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True, cwd=ROOT,
                preexec_fn=hears_ctrl_c,  # noqa: PLW1509 - one call of the kernel
            )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str]:
        """A command that ends: exit code and all it said."""
        return self.run_as_process(*words) if words[0] == "up" else run_here(main, *self.words(*words))

    def run_as_process(self, *words: str) -> tuple[int, str]:
        """A command that ends, in a process of its own."""
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, check=False, cwd=ROOT, timeout=2 * SECONDS_MAX
        )
        return done.returncode, done.stdout + done.stderr

    def up(self, file: Path | None = None) -> subprocess.Popen[str]:
        """`kavka up` in the foreground, until it says that it is ready."""
        process = self.start("up", "-f", str(file or self.file()))
        wait_until(lambda: "ready;" in self.said or process.poll() is not None, "up is ready")
        assert process.poll() is None, self.said
        return process

    def wait_for_answers(self, times: int) -> None:
        """Until the broker has come up so often since the first `up`."""
        wait_until(lambda: self.said.count("answers on") == times, f"the broker has come up {times} times")

    @property
    def output(self) -> Path:
        return self.directory / "output.txt"

    @property
    def said(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    @property
    def broker_pid(self) -> int:
        return self.pid(0)

    def pid(self, node: int) -> int:
        """Which process a node is."""
        return int((self.cluster / f"node-{node}.pid").read_text())

    def addresses(self) -> list[str]:
        """Where clients reach the brokers, in order."""
        offsets = json.loads((self.cluster / "members.json").read_text())["portOffsets"]
        return [f"127.0.0.1:{self.port + offsets[node]}" for node in sorted(offsets, key=int)]

    def status(self) -> dict[str, Any]:
        """The status of the cluster as `kavka get` tells it."""
        status: dict[str, Any] = json.loads(self.run("get", "kvc", "quickstart", "-o", "json")[1])["status"]
        return status

    def everything(self) -> list[dict[str, Any]]:
        """All that `kavka get` tells, without the use of quotas: that is told with the next look."""
        items: list[dict[str, Any]] = json.loads(self.run("get", "all", "-o", "json")[1])["items"]
        for item in items:
            for field in ("used", "usage"):
                item["status"].pop(field, None)
        return items

    def processes(self) -> list[str]:
        """Command lines of everything alive that was started for this test, found by its directory."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
                if str(self.directory) in line:
                    found.append(f"{entry.name}: {line}")
        return found

    def end(self) -> None:
        """Stop whatever a failed test has left."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for running in self.state.glob("default/*/supervisor.json"):
            self.run("down", running.parent.name)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kavka_cli", *self.words(*words)]

    def words(self, *words: str) -> list[str]:
        return [*words, "--state-dir", str(self.state)]
