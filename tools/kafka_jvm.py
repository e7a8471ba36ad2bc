"""The JVM that runs Apache Kafka's servers and tools for the tests, so that it starts in half the time.

    python -m tools.kafka_jvm        makes the archive of classes, and prints its place

A start of Apache Kafka is mostly work of the JVM: it looks into a hundred jars, checks the classes and compiles them
twice. The first compiler alone does for runs this short, and what is known of the classes is kept in an archive
(AppCDS, JEP 350): made once from a broker that starts, takes a topic and stops; kept in the cache by the version of
Kafka and by the JVM. One that does not take the archive looks into the jars as before. The bench has other options.
"""

import fcntl
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache as once
from hashlib import sha256
from pathlib import Path
from typing import Final

from tools.cache import cache
from tools.kafka_jars import VERSION, class_path, kafka_jars

SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.05
SHORT_RUNS: Final = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")
# Of the JVM itself, so that a tool's own output stands alone: that an archive is of no use is no news.
SILENT: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
PORTS: Final = 2
PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{0},CONTROLLER://127.0.0.1:{1}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{1}
log.dirs={2}
offsets.topic.replication.factor=1
"""


def java(heap: str) -> list[str]:
    """The start of a command line whose class path begins with Apache Kafka's, and whose heap is such: `384M`."""
    return ["java", f"-Xmx{heap}", *SHORT_RUNS, *shared()]


@once
def shared() -> tuple[str, ...]:
    """The options by which a JVM takes the archive; none where it could not be made."""
    archive = made()
    return (f"-XX:SharedArchiveFile={archive}", *SILENT) if archive.stat().st_size else ()


def made() -> Path:
    """The archive, made where it is missing; an empty file where this JVM makes none."""
    archive = cache("classes") / f"{VERSION}-{_jvm()}.jsa"
    with (archive.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            for former in archive.parent.glob(f"{VERSION}-*.jsa"):
                former.unlink()
            _make(archive)
    return archive


def _jvm() -> str:
    """What tells one JVM, with these jars, from another: an archive is refused by any but the one that made it."""
    program = Path(shutil.which("java") or "java").resolve()
    told = f"{program} {program.stat().st_mtime_ns} {class_path()} {kafka_jars().stat().st_mtime_ns}"
    return sha256(told.encode()).hexdigest()[:12]


def _make(archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        written = Path(scratch) / "classes.jsa"
        try:
            _train(Path(scratch), written)
            _kafka("-Xshare:on", f"-XX:SharedArchiveFile={written}", "kafka.Kafka", "--version")
        except (OSError, subprocess.SubprocessError, TimeoutError) as problem:
            print(f"no archive of classes, so each start of Apache Kafka takes longer: {problem}", file=sys.stderr)
            written = Path(scratch) / "none"
            written.touch()
        written.replace(archive)


def _train(directory: Path, archive: Path) -> None:
    """Run a broker that writes the archive as it ends. Raises OSError, SubprocessError and TimeoutError."""
    ports, config = _free_ports(), directory / "server.properties"
    config.write_text(PROPERTIES.format(*ports, directory / "data"))
    _kafka("kafka.tools.StorageTool", "format", "--standalone", "-t", "a2F2a2EtY2xhc3Nlcy1hcg", "-c", str(config))
    line = _line(f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable", "kafka.Kafka", str(config))
    broker = subprocess.Popen(line, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(ports[0])
        bootstrap = f"127.0.0.1:{ports[0]}"
        _kafka("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, "--create", "--topic", "a")
        broker.terminate()
        broker.wait(SECONDS_MAX)
    finally:
        broker.kill()
        broker.wait()


def _line(*words: str) -> list[str]:
    options = [word for word in words if word.startswith(("-X", "-D"))]
    return ["java", *SHORT_RUNS, *options, "-cp", class_path(), *(word for word in words if word not in options)]


def _kafka(*words: str) -> None:
    subprocess.run(_line(*words), check=True, capture_output=True, timeout=SECONDS_MAX)


def _free_ports() -> list[int]:
    """Two ports that nobody listens on just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(PORTS)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _await(port: int) -> None:
    """Wait until a connection is taken. Raises TimeoutError."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing listens on port {port}") from None
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    print(made())
