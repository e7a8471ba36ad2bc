"""The commands of the README for the Kafka that a reader has run as they are written, in an empty home."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from kavka_pytest.in_process import KafkaInProcess
from tests.tidy.tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "kafka-1.example.com:9092"
SECTION = re.search(r"^## With the Kafka that you have\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
assert SECTION is not None
LINES: list[str] = re.findall(r"^\.venv/bin/kavka .*$", SECTION[1], re.MULTILINE)
COMMANDS = {line.split()[1]: line for line in LINES}
SECONDS_MAX = 120
HEED_INTERRUPTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a command that hears SIGINT, which a shell has those ignore that it starts in the background."""
FOUND_SOMETHING = 1
"""The exit code of `kavka doctor` where it has findings, here a group without members."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaInProcess]:
    with KafkaInProcess(tmp_path_factory.mktemp("kafka")) as running:
        topic = running.topic("orders")
        producer = confluent_kafka.Producer({"bootstrap.servers": str(running)})
        producer.produce(topic, b"one")
        assert producer.flush(60) == 0
        consumer = confluent_kafka.Consumer({"bootstrap.servers": str(running), "group.id": "billing"})
        consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 0)], asynchronous=False)
        consumer.close()
        yield running


def words(name: str, kafka: KafkaInProcess) -> list[str]:
    """The command as the README has it, for this Kafka."""
    assert ADDRESS in COMMANDS[name]
    return COMMANDS[name].replace(ADDRESS, str(kafka)).split()


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def test_the_readme_names_these_commands() -> None:
    assert list(COMMANDS) == ["doctor", "top", "topics", "groups", "acls", "console"]


@pytest.mark.parametrize(
    ("name", "code", "shown"),
    [
        ("doctor", FOUND_SOMETHING, "billing"),
        ("topics", 0, "orders"),
        ("groups", 0, "billing"),
        ("acls", 0, "authorizer"),
    ],
)
def test_a_command_that_ends(kafka: KafkaInProcess, tmp_path: Path, name: str, code: int, shown: str) -> None:
    ran = subprocess.run(
        words(name, kafka), cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False,
        timeout=SECONDS_MAX,
    )  # fmt: skip
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    assert shown in ran.stdout + ran.stderr
    assert list(tmp_path.iterdir()) == [], "it only reads"


def test_the_console_prints_its_address_and_ends_with_ctrl_c(kafka: KafkaInProcess, tmp_path: Path) -> None:
    command = [*words("console", kafka), "--port", "0"]
    heeding = [sys.executable, "-c", HEED_INTERRUPTS, *command]
    process = subprocess.Popen(heeding, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?key=\S+\n", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS_MAX) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_terminal_view_shows_one_look(kafka: KafkaInProcess, tmp_path: Path) -> None:
    command = [*words("top", kafka), "--once"]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()
