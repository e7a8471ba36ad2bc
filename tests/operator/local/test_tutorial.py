"""The tutorial, command by command as it is written, with the wheels of `make package` in a home that is empty.

`make setup` asks an index; in its place `.venv` gets the wheels. The files of the tutorial have other ports.
"""

import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.operator.local.installation import environment, install
from tests.operator.local.support import ROOT, free_ports, hears_ctrl_c, wait_until
from tools.package import build

PAGE = (ROOT / "docs/tutorial/first-cluster.md").read_text(encoding="utf-8")
LINES = [
    line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]
SETUP, UP, APPLY, GET_TOPICS, GET_QUOTAS, DESCRIBE, APPLY_QUOTAS, EXPLAIN, KILL = LINES
MESSAGE = next(line for line in PAGE.splitlines() if line.startswith("error: mine.yaml"))
SECONDS_MAX = 180
PRODUCE_BYTES = 4 * 1024 * 1024


@dataclass
class Reader:
    """A user who follows the page, in a directory with `.venv` and `examples`."""

    directory: Path

    @property
    def log(self) -> Path:
        """What the first terminal shows."""
        return self.directory / "first-terminal"

    def run(self, line: str) -> tuple[int, str]:
        """Run a line of the page in the second terminal; its exit code, and what it shows."""
        ran = subprocess.run(
            ["bash", "-c", line], cwd=self.directory, env=environment(self.directory), capture_output=True, text=True,
            check=False, timeout=SECONDS_MAX,
        )  # fmt: skip
        return ran.returncode, ran.stdout + ran.stderr

    def shows(self, line: str) -> str:
        """What a line shows, which succeeds."""
        code, said = self.run(line)
        assert code == 0, f"{line}\n{said}"
        return said

    def until_told(self, words: str) -> None:
        wait_until(lambda: words in self.log.read_text(), f'the first terminal tells "{words}"')


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    directory = tmp_path_factory.mktemp("reader")
    install(build(tmp_path_factory.mktemp("dist")), directory, ".venv")
    (directory / "examples").mkdir()
    port, controller_port, metrics_port = free_ports(3)
    for name in ("quickstart.yaml", "quotas.yaml"):
        text = (ROOT / "examples" / name).read_text()
        own = (
            f"  metrics: {{port: {metrics_port}}}\n  listeners:\n    - {{name: CONTROLLER, port: {controller_port}}}\n"
        )
        text = text.replace("  listeners:\n", own).replace("port: 9092", f"port: {port}")
        (directory / "examples" / name).write_text(text)
    return Reader(directory)


@pytest.fixture(scope="module")
def first_terminal(reader: Reader) -> Iterator["subprocess.Popen[bytes]"]:
    """`kavka up` in the foreground, which hears Ctrl-C."""
    with reader.log.open("wb") as log:
        process = subprocess.Popen(
            UP.split(), cwd=reader.directory, env=environment(reader.directory), stdout=log, stderr=log,
            preexec_fn=hears_ctrl_c,  # noqa: PLW1509 - it sets one signal, before any thread of the child
        )  # fmt: skip
    yield process
    if process.poll() is None:
        process.terminate()
        process.wait(SECONDS_MAX)


def produce(reader: Reader, client_id: str) -> None:
    """Produce more than the quota lets through in a second."""
    bootstrap = re.search(r"127\.0\.0\.1:\d+(?:,127\.0\.0\.1:\d+)*", reader.log.read_text())
    assert bootstrap is not None
    producer = Producer({"bootstrap.servers": bootstrap[0], "client.id": client_id})
    for _ in range(PRODUCE_BYTES // 65_536):
        producer.produce("archive", b"x" * 65_536)
    assert producer.flush(SECONDS_MAX) == 0


def edit(reader: Reader, old: str, new: str) -> None:
    """Edit mine.yaml, a copy of the example."""
    mine = reader.directory / "mine.yaml"
    text = (mine if mine.exists() else reader.directory / "examples/quickstart.yaml").read_text()
    assert old in text
    mine.write_text(text.replace(old, new, 1))


def test_every_command_of_the_tutorial_does_what_the_page_says(
    reader: Reader, first_terminal: "subprocess.Popen[bytes]"
) -> None:
    assert SETUP == "make setup"
    reader.until_told("backfill   quickstart   client-id=backfill")
    for heading in re.findall(r"^(?:NAME|NODE) .*$", PAGE, re.MULTILINE):
        assert " ".join(heading.split()) in " ".join(reader.log.read_text().split()), heading

    edit(reader, "partitions: 6", "partitions: 12")
    reader.shows(APPLY)
    reader.until_told('add partitions to topic "flights", to have 12')
    assert re.search(r"^flights +quickstart +12 ", reader.shows(GET_TOPICS), re.MULTILINE)
    edit(reader, "partitions: 12", "partitions: 3")
    code, said = reader.run(APPLY)
    number = r"mine\.yaml:\d+"
    assert code == 1
    assert re.sub(number, "mine.yaml", MESSAGE) in re.sub(number, "mine.yaml", said)
    assert "nothing was applied: 1 error" in said
    edit(reader, "partitions: 3", "partitions: 12")

    produce(reader, "backfill")
    wait_until(lambda: re.search(r"throttledSeconds: [1-9]", reader.shows(DESCRIBE)) is not None, "it is held")
    assert "backfill" in reader.shows(GET_QUOTAS)
    reader.shows(APPLY_QUOTAS)
    explained = reader.shows(EXPLAIN)
    assert "alice" in explained
    wait_until(lambda: "Shadowed" in reader.shows(DESCRIBE), "the quota says what hides it")

    reader.shows(KILL)
    reader.until_told("node 0 was killed by signal 9; starting it again in 0.1 s")
    running = re.compile(r"^0 +a +Running .* 1 +127", re.MULTILINE)
    wait_until(lambda: running.search(reader.shows(".venv/bin/kavka get kvc -o wide")) is not None, "it runs again")

    edit(reader, "  config:\n", "  config:\n    queued.max.request.bytes: 209715200\n")
    assert "3 of 3 nodes restarted" in reader.shows(APPLY)
    first_terminal.send_signal(signal.SIGINT)
    assert first_terminal.wait(SECONDS_MAX) == 0
    assert (reader.directory / ".local/state/kavka/default/quickstart/data").is_dir(), "records stay"
