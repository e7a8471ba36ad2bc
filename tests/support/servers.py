"""Brokers as processes, for tests that speak to them as clients do.

`start_kavka` does what `kavka up` does for a broker: write server.properties, format, run, wait until it answers.
`start_apache_kafka` starts the real thing from its jars with the same keys, so that a test can be shown to ask for
nothing but Kafka's own behaviour: KAVKA_TEST_SERVER=apache-kafka runs the conformance tests against it.

A server is ended by its pid and nothing else, and its log stays beside its data.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from kavka_broker.cli import main
from tests.support.commands import run_here
from tests.support.wire import LOOK_SECONDS_MAX, brokers_registered
from tools.kafka_jars import class_path, newer_class_path
from tools.kafka_jvm import java

READY_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 60.0
POLL_SECONDS = 0.02
LOG_LINES_SHOWN = 60
PORTS = range(*map(int, os.environ.get("KAVKA_TEST_PORTS", "10000-30000").split("-")))
"""Apart for suites that run at a time: the port of a node that was killed looks free, and its peers still call it."""
_FIRST = random.choice(PORTS)
_PORTS: Iterator[int] = cycle([*range(_FIRST, PORTS.stop), *range(PORTS.start, _FIRST)])
CLUSTER_ID = "a2F2a2EtY29uZm9ybWFuY2"  # any 16 bytes in base64url


class ServerError(Exception):
    """The server did not start, or did not stop, in time."""


@dataclass(slots=True)
class Server:
    """A broker that runs, or ran."""

    command: list[str]
    address: tuple[str, int]
    directory: Path
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def bootstrap(self) -> str:
        host, port = self.address
        return f"{host}:{port}"

    @property
    def log_path(self) -> Path:
        return self.directory / "server.log"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server does not run"
        return self.process.pid

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start it, and do not wait."""
        assert self.process is None, "the server runs already"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Wait until it serves."""
        assert self.process is not None, "the server does not run"
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self.serves():
            if self.process.poll() is not None:
                raise ServerError(f"ended with status {self.process.returncode} before it served:\n{self.last_lines()}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServerError(f"serves nothing after {READY_SECONDS_MAX:g} s:\n{self.last_lines()}")
            time.sleep(POLL_SECONDS)

    def serves(self) -> bool:
        """Whether it answers and knows itself as a broker."""
        try:
            return brokers_registered(self.address, LOOK_SECONDS_MAX) > 0
        except OSError:
            return False

    def stop(self) -> int:
        """SIGTERM, and wait; the exit status."""
        return self.end(signal.SIGTERM)

    def kill(self) -> int:
        """SIGKILL: what a crash of the process is like."""
        return self.end(signal.SIGKILL)

    def end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.send_signal(how)
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerError(f"runs on {STOP_SECONDS_MAX:g} s after {how.name}:\n{self.last_lines()}") from None

    def log_lines(self) -> list[str]:
        return self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []

    def last_lines(self) -> str:
        return "\n".join(self.log_lines()[-LOG_LINES_SHOWN:])


def free_port() -> int:
    """A port of 127.0.0.1 that is free now, and that no outgoing connection takes before a server does: those take
    higher ones. No two calls give the same.
    """
    for port in _PORTS:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("ports do not end")


def properties(directory: Path, settings: Mapping[str, str]) -> tuple[Path, tuple[str, int]]:
    """Write server.properties of a node that is broker and controller; its path and its first address."""
    port, controller_port = free_port(), free_port()
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(directory / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "share.coordinator.state.topic.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        **settings,
    }
    # Formatting runs in the test's own process, whose directory is another one than the server's.
    values["log.dirs"] = ",".join(str(directory / place) for place in values["log.dirs"].split(","))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    first = values["listeners"].partition(",")[0]
    return path, ("127.0.0.1", int(first.rpartition(":")[2]))


def format_directory(command: list[str], directory: Path) -> None:
    ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise ServerError(f"{' '.join(command)}: exit status {ran.returncode}\n{ran.stdout}{ran.stderr}")


def format_kavka(config: Path, *words: str) -> None:
    """Format the log directories of a broker of Kavka, as `kavka-broker format` does."""
    code, said = run_here(main, "format", "--config", str(config), "--cluster-id", CLUSTER_ID, *words)
    if code != 0:
        raise ServerError(f"{config}: kavka-broker format: exit status {code}\n{said}")


def start_kavka(
    directory: Path, settings: Mapping[str, str] | None = None, *, formatting: Sequence[str] = ()
) -> Server:
    """A Kavka broker in a new directory, ready to serve. `formatting` are further words for `format`."""
    config, address = properties(directory, {"kavka.admin.listener": "", **(settings or {})})
    program = [sys.executable, "-m", "kavka_broker"]
    format_kavka(config, *formatting)
    server = Server([*program, "run", "--config", str(config)], address, directory)
    server.start()
    return server


LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
"""


def start_apache_kafka(
    directory: Path,
    settings: Mapping[str, str] | None = None,
    *,
    release: str | None = None,
    classes: Path | None = None,
    newest: bool = False,
) -> Server:
    """Apache Kafka's broker in a new directory, ready to serve. Needs a JDK and the jars. `release`: whose levels the
    cluster begins with. `classes`: a directory of plugins. `newest`: the newest release of it.
    """
    own = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", **(settings or {})}
    config, address = properties(directory, own)
    logging = directory / "log4j2.properties"
    logging.write_text(LOG4J)
    jars = newer_class_path() if newest else class_path()
    path = jars if classes is None else f"{jars}:{classes}"
    program = [*java("512M"), f"-Dlog4j2.configurationFile={logging}", f"-Dkafka.logs.dir={directory}", "-cp", path]
    storage = [*program, "kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER_ID, "-c", str(config)]
    format_directory([*storage, *(() if release is None else ("--release-version", release))], directory)
    server = Server([*program, "kafka.Kafka", str(config)], address, directory)
    server.start()
    return server


def is_apache_kafka() -> bool:
    """Whether the server under test is Apache Kafka itself."""
    return os.environ.get("KAVKA_TEST_SERVER", "kavka") == "apache-kafka"


def start_server(directory: Path, settings: Mapping[str, str] | None = None) -> Server:
    """The server under test: Kavka, unless KAVKA_TEST_SERVER says apache-kafka."""
    return (start_apache_kafka if is_apache_kafka() else start_kavka)(directory, settings)


def resident_bytes(pid: int) -> int:
    """The memory that a process holds, as Linux tells it."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
