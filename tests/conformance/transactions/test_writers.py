"""Producers of other clients while the leader of what they write, and their coordinator, are killed.

What they have committed is there once, what they have aborted is not, and a transaction whose end they do not know is
whole or absent.
"""

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.transactions.copying import OUTPUT, PARTITIONS, Application, Topics
from tests.conformance.transactions.writer import ABORTED_EACH
from tests.support.nodes import Nodes, cluster
from tests.support.programs import NODE, go_clients, node_modules

pytestmark = pytest.mark.slow

TRANSACTION_STATE = "__transaction_state"
MORE = 10
#: A client may lose track of a transaction at each of two deaths, and while it takes its id over again.
UNKNOWN_MAX = 6
PYTHON = (sys.executable, "-m", "tests.conformance.transactions.writer")


@pytest.mark.parametrize("client", ["aiokafka", "kafka-python"])
def test_a_client_of_python_survives_deaths(client: str, tmp_path: Path) -> None:
    write_on(tmp_path, (*PYTHON, client), PARTITIONS)


@pytest.mark.go
@pytest.mark.parametrize("client", ["franz", "sarama"])
def test_a_client_of_go_survives_deaths(client: str, tmp_path: Path) -> None:
    write_on(tmp_path, (str(go_clients()), "write", client), 1)


@pytest.mark.node
def test_kafkajs_survives_deaths(tmp_path: Path) -> None:
    script = str(shutil.copy(NODE / "kafkajs_writer.mjs", tmp_path))
    (tmp_path / "node_modules").symlink_to(node_modules())
    write_on(tmp_path, ("node", script), PARTITIONS)


def write_on(tmp_path: Path, command: tuple[str, ...], partitions: int) -> None:
    """Kill brokers while a program writes each transaction to so many partitions, and judge what is there."""
    with cluster(tmp_path) as nodes:
        topics = Topics(nodes)
        writer = Application(command, nodes.bootstrap, tmp_path / "writer.log")
        writer.start()
        try:
            go_on(nodes, writer)
            for victim in (topics.leader(OUTPUT, 0), topics.coordinator(TRANSACTION_STATE, OUTPUT)):
                nodes.kill(victim)
                go_on(nodes, writer)
                nodes.start(victim)
                nodes.wait("every replica is in sync", topics.are_in_sync)
            go_on(nodes, writer)
        finally:
            writer.kill()
        judge(nodes, topics, writer, partitions)


def go_on(nodes: Nodes, writer: Application) -> None:
    """Wait until more transactions have ended."""
    before = len(writer.lines("committed"))
    nodes.wait("writing goes on", lambda: len(writer.lines("committed")) >= before + MORE)


def judge(nodes: Nodes, topics: Topics, writer: Application, partitions: int) -> None:
    """What the writer says, beside what is there. Its last transaction, of which it has no line, is not judged."""
    committed, aborted, unknown = (numbers(writer, word) for word in ("committed", "aborted", "unknown"))
    assert aborted
    assert len(unknown) <= UNKNOWN_MAX, writer.log.read_text()
    found = Counter[int]()

    def is_all_there() -> bool:  # markers are written after the commit, one after the other
        found.clear()
        found.update({int(number): times for number, times in topics.read().items()})
        return all(found[number] >= partitions for number in committed)

    nodes.wait("every commit is there", is_all_there)
    assert all(found[number] == partitions for number in committed), f"more than once: {found}"
    never = aborted | {number for number in unknown if number % ABORTED_EACH == 0}
    assert not [number for number in never if found[number]], "aborted, and there"
    torn = {number: found[number] for number in unknown if found[number] not in (0, partitions)}
    assert not torn, f"neither whole nor absent, with so many records: {torn}"


def numbers(writer: Application, word: str) -> set[int]:
    return {int(line.split()[1]) for line in writer.lines(word)}
