"""The two brokers, each formatted, started, asked and stopped in the same way.

Both get the same server.properties, word for word: Kafka's distribution's own keys and, for the rest, each broker's
defaults. Segments of deleted topics go after a second instead of a minute, so that the pages of one measure are not
written to disk during the next. Apache Kafka's JVM gets the options of its own start script, and Kavka bytecode, as an
installation has it: where Python is told to write none (PYTHONDONTWRITEBYTECODE), a start from the sources takes twice
as long.
"""

import compileall
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import kavka_broker
from bench import processes, wire
from tools.kafka_jars import class_path

CLUSTER_ID = "kavkaBenchCluster0000A"
START_SECONDS_MAX = 60.0
LOOK_AGAIN_SECONDS = 0.001

LOG4J = """\
status = error
appender.file.type = File
appender.file.name = FILE
appender.file.fileName = {directory}/server.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = FILE
"""
JVM_OPTIONS = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]


@dataclass(frozen=True, slots=True)
class Product:
    """How one of the two is formatted and run, given the directory with its server.properties."""

    name: str
    format: Callable[[Path], list[str]]
    run: Callable[[Path], list[str]]


def compile_kavka() -> None:
    """Make the bytecode of what has none that is up to date."""
    for folder in kavka_broker.__path__:
        compileall.compile_dir(folder, quiet=1)


def _java(directory: Path, *arguments: str) -> list[str]:
    logging = f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}"
    return ["java", *JVM_OPTIONS, logging, "-cp", class_path(), *arguments]


def _kavka_format(directory: Path) -> list[str]:
    config = ["--config", str(directory / "server.properties")]
    return [sys.executable, "-m", "kavka_broker", "format", *config, "--cluster-id", CLUSTER_ID]


def _kavka_run(directory: Path) -> list[str]:
    return [sys.executable, "-m", "kavka_broker", "run", "--config", str(directory / "server.properties")]


def _kafka_format(directory: Path) -> list[str]:
    config = str(directory / "server.properties")
    return _java(directory, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config, "--standalone")


def _kafka_run(directory: Path) -> list[str]:
    return _java(directory, "kafka.Kafka", str(directory / "server.properties"))


def strained_kavka(how: str) -> Product:
    """Kavka that takes its disk for strained, see `bench.strained_disk`."""
    command = [sys.executable, "-m", "bench.strained_disk", how]
    return Product("kavka", _kavka_format, lambda directory: [*command, *_kavka_run(directory)[3:]])


KAVKA = Product("kavka", _kavka_format, _kavka_run)
KAFKA = Product("kafka", _kafka_format, _kafka_run)


def server_properties(directory: Path, port: int, controller_port: int, admin_port: int) -> str:
    """The configuration that both brokers run with. Apache Kafka passes over Kavka's one key of its own."""
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listeners={listeners}
advertised.listeners={listeners}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={directory}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.segment.delete.delay.ms=1000
kavka.admin.listener=127.0.0.1:{admin_port}
"""


class Broker:
    """One broker in a directory of its own. `start` may be called again after `stop`: a restart."""

    def __init__(self, product: Product, directory: Path) -> None:
        self.product = product
        self.name = product.name
        self.directory = directory
        self.port = processes.free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def format(self) -> None:
        """Write the configuration and prepare the log directory."""
        self.write_configuration()
        processes.run(self.product.format(self.directory))

    def write_configuration(self) -> None:
        """Write the configuration."""
        self.directory.mkdir(parents=True)
        ports = processes.free_port(), processes.free_port()
        (self.directory / "server.properties").write_text(server_properties(self.directory, self.port, *ports))
        (self.directory / "log4j2.properties").write_text(LOG4J.format(directory=self.directory))

    def start(self) -> float:
        """Start the process; the seconds until it answered its first request, ApiVersions."""
        started = time.perf_counter()
        self.launch()
        self.wait_until_it_answers()
        return time.perf_counter() - started

    def launch(self) -> None:
        """Start the process and wait for nothing."""
        self._process = processes.start(self.product.run(self.directory), self.directory / "output.log")

    def wait_until_it_answers(self) -> None:
        assert self._process is not None, f"{self.name} is not running"
        started = time.perf_counter()
        while not wire.answers(self.port):
            waited = time.perf_counter() - started
            if self._process.poll() is not None or waited > START_SECONDS_MAX:
                said = (self.directory / "output.log").read_text(errors="replace")[-2000:]
                raise processes.ClientError(f"{self.name} does not answer after {waited:.1f} s:\n{said}")
            time.sleep(LOOK_AGAIN_SECONDS)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> float:
        """End the process; the seconds that took."""
        assert self._process is not None, f"{self.name} is not running"
        stopping = time.perf_counter()
        processes.stop(self._process, how)
        self._process = None
        return time.perf_counter() - stopping

    def wait_until_gone(self) -> None:
        """The end of a process that was told to stop."""
        assert self._process is not None, f"{self.name} is not running"
        self._process.wait(START_SECONDS_MAX)
        self._process = None
