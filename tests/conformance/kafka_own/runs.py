"""Runs classes of Apache Kafka's own compiled tests in one JVM: on Kavka through a stand-in, or on Apache Kafka itself.

Each harness of those tests builds its cluster with the class KafkaClusterTestKit of the test runtime. One of that name
in `java` stands ahead of it on the class path, and starts processes of Kavka; with APACHE_KAFKA it is left out, and
everything else is the same. Nothing of Apache Kafka is copied or changed.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.servers import PORTS
from tools.cache import cache
from tools.kafka_jars import class_path, class_path_of_tests
from tools.run_tests import UNSET

KAVKA: Final = "kavka"
APACHE_KAFKA: Final = "apache-kafka"
JAVA: Final = Path(__file__).with_name("java")
#: Of both products: what writes and chooses cases. All other sources are the stand-in.
OF_BOTH: Final = {
    "CaseFilter": "org.junit.jupiter.api.extension.Extension",
    "CaseLog": "org.junit.platform.launcher.TestExecutionListener",
}
COMPILE_SECONDS_MAX: Final = 180
CASE_SECONDS_MAX: Final = 180
END_SECONDS_MAX: Final = 90
COLUMNS: Final = 6
OUTCOMES: Final = {"SUCCESSFUL": "passed", "FAILED": "failed", "ABORTED": "skipped", "SKIPPED": "skipped"}
STARTED: Final = "broker.started"
INSIDE: Final = "common.test.Inside: wants the inside of a broker"
REFUSED: Final = re.compile(r"broker\.refused reason=\"?([^\"\\]*)")
LEFT_OUT: Final = "left out by the allow list"


@dataclass(frozen=True, slots=True)
class Case:
    """A test method with its parameters, as JUnit shows them, and what came of it."""

    kind: str
    method: str
    shown: str
    outcome: str  # passed, failed, skipped or inside
    seconds: float
    trace: str

    @property
    def name(self) -> str:
        """How it is called beside its class."""
        return f"{self.method} {self.shown}"

    @property
    def why(self) -> str:
        """The message of the failure, in one line."""
        refused = REFUSED.search(self.trace)
        return refused[1] if refused else self.trace.partition("\\n")[0]


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run: its cases, whether it ended by itself, its logs, and how many nodes of Kavka ran."""

    product: str
    cases: Sequence[Case]
    has_ended: bool
    logs: Path
    nodes: int = 0


def run(
    classes: Sequence[str], directory: Path, *, product: str = KAVKA, left_out: str = "", seconds_max: float = 3600.0
) -> Run:
    """Run these classes, or CLASS#METHOD, without the cases that `left_out` describes; logs go into the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    cases, console = directory / "cases.tsv", directory / "console.log"
    cases.unlink(missing_ok=True)
    shutil.rmtree(directory / "nodes", ignore_errors=True)
    line = command(classes, directory, product, left_out)
    with console.open("w") as log:
        process = subprocess.Popen(
            line, stdout=log, stderr=log, cwd=directory, env=environment(), start_new_session=True
        )
        has_ended = is_over(process, seconds_max)
        end_nodes(directory)
    nodes = sum(STARTED in log.read_text(errors="replace") for log in directory.glob("nodes/*.log"))
    return Run(product, read(cases), has_ended, directory, nodes)


def environment() -> dict[str, str]:
    """Build the environment of the JVM and its nodes, which share bytecode: compiling takes each of them 1.3 s."""
    return {name: value for name, value in os.environ.items() if name not in UNSET}


def is_over(process: "subprocess.Popen[bytes]", seconds_max: float) -> bool:
    """Whether the JVM ends in time; otherwise it is ended, and ends its nodes as far as it still can."""
    try:
        process.wait(seconds_max)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def end_nodes(directory: Path) -> None:
    """End the nodes that a JVM which was killed has left: those whose settings are files of this run."""
    ours = str(directory / "tmp").encode()
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = line.read_bytes().split(b"\0")
            if b"kavka_broker" in words and any(word.startswith(ours + b"/") for word in words):
                os.kill(int(line.parent.name), signal.SIGKILL)


def command(classes: Sequence[str], directory: Path, product: str, left_out: str) -> list[str]:
    """The command line of JUnit's console."""
    compiled = compile_java()
    stand_in = [compiled / "stand-in"] if product == KAVKA else []
    path = ":".join(map(str, [*stand_in, compiled / "both", class_path_of_tests(), class_path()]))
    scratch = directory / "tmp"
    scratch.mkdir(exist_ok=True)
    settings = {
        "java.io.tmpdir": scratch,
        "jdk.attach.allowAttachSelf": "true",
        "kavka.cases": directory / "cases.tsv",
        "kavka.left.out": left_out,
        "kavka.logs": directory / "nodes",
        "kavka.ports": f"{PORTS.start}-{PORTS.stop}",
        "kavka.python": sys.executable,
        "log4j2.configurationFile": JAVA / "log4j2.properties",
    }
    junit = {
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "junit.jupiter.execution.timeout.testable.method.default": f"{CASE_SECONDS_MAX} s",
    }
    return [
        *("java", "-Xmx768M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"),
        *(f"-D{key}={value}" for key, value in settings.items()),
        *("-cp", path, "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--details=none"),
        *(f"--config={key}={value}" for key, value in junit.items()),
        *(word for name in classes for word in ("--select-method" if "#" in name else "--select-class", name)),
    ]


def compile_java() -> Path:
    """Where the classes of `java` are, compiled once for each state of their sources: `stand-in` and `both`."""
    sources = sorted(JAVA.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    home = cache("kafka-own-tests", digest.hexdigest()[:16])
    if not (home / "complete").exists():
        shutil.rmtree(home / "both", ignore_errors=True)
        services = home / "both" / "META-INF" / "services"
        services.mkdir(parents=True)
        for name, service in OF_BOTH.items():
            (services / service).write_text(f"{name}\n")
        compile_to(home / "both", [source for source in sources if source.stem in OF_BOTH])
        compile_to(home / "stand-in", [source for source in sources if source.stem not in OF_BOTH])
        (home / "complete").touch()
    return home


def compile_to(directory: Path, sources: Sequence[Path]) -> None:
    """Compile sources against Apache Kafka and its test runtime. Raises AssertionError with what the compiler said."""
    line = [
        "javac",
        "-nowarn",
        "-d",
        str(directory),
        "-cp",
        f"{class_path()}:{class_path_of_tests()}",
        *map(str, sources),
    ]
    ran = subprocess.run(line, check=False, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX)
    assert ran.returncode == 0, ran.stderr


def read(file: Path) -> list[Case]:
    """The cases that `CaseLog.java` has written."""
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    found = [case(*line.split("\t", COLUMNS - 1)) for line in lines]
    return [one for one in found if not (one.outcome == "skipped" and one.trace.startswith(LEFT_OUT))]


def case(kind: str, method: str, shown: str, status: str, seconds: str, trace: str) -> Case:
    """A line of `CaseLog.java`."""
    outcome = OUTCOMES[status]
    if outcome == "failed" and INSIDE in trace:
        outcome = "inside"
    return Case(kind, method, " ".join(shown.split()), outcome, float(seconds), trace)
