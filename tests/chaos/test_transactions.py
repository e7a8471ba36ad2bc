"""The workload of transactions without faults, and mistakes that its judges must find. `make chaos
ARGS=--transactions` has the faults.
"""

from pathlib import Path

import pytest
from confluent_kafka import Message, Producer, TopicPartition

from tests.chaos.transactions import PARTITIONS, TOPICS, Copier, Transactions, by_place, uncopied
from tests.sim.recorded import Written
from tests.support.servers import start_kavka
from tests.support.topics import create_topic

ROUNDS = 5
SOURCE, TARGET = (("values", 0), ("copies", 0))


class Repeating(Copier):
    """Reads on from where the group does not stand: every other transaction comes once more."""

    def _work(self, producer: Producer, written: Written, messages: list[Message]) -> None:
        super()._work(producer, written, messages)
        if written.number % 2 == 0:
            for place, records in by_place(messages).items():
                self._consumer.seek(TopicPartition(*place, records[0][0]))


class Impatient(Transactions):
    """Its reader does not wait for a commit."""

    isolation = "read_uncommitted"


def found_by(directory: Path, kind: type[Transactions], copier: type[Copier]) -> list[str]:
    """Anomalies of a short run beside one broker."""
    server = start_kavka(directory)
    failures: list[str] = []
    try:
        for topic in TOPICS:
            create_topic(server, topic, PARTITIONS)
        transactions = kind(server.bootstrap, 1, failures, copier)
        transactions.start()
        for _ in range(ROUNDS):
            transactions.wait_until_they_move()
        transactions.finish()
        assert not failures
        return transactions.anomalies()
    finally:
        server.kill()


@pytest.mark.slow
def test_every_value_is_copied_once_and_no_anomaly_is_found(tmp_path: Path) -> None:
    assert found_by(tmp_path, Transactions, Copier) == []


@pytest.mark.slow
def test_a_copier_that_goes_back_and_a_reader_that_waits_for_no_commit_are_found(tmp_path: Path) -> None:
    kinds = {line.partition(":")[0] for line in found_by(tmp_path, Impatient, Repeating)}
    assert "copied-twice" in kinds
    assert "aborted-read" in kinds


@pytest.mark.parametrize(
    ("values", "copies", "anomalies"),
    [
        ({0: "a", 2: "b"}, {0: "a>c.1", 3: "b>c.2"}, []),
        ({0: "a", 2: "b"}, {0: "a>c.1"}, ["not-copied: b of values-0@2: 0 copies"]),
        ({0: "a"}, {0: "a>c.1", 4: "a>d.1"}, ["copied-twice: a of values-0@0: 2 copies"]),
    ],
)
def test_a_value_without_a_copy_and_one_with_two_are_found(
    values: dict[int, str], copies: dict[int, str], anomalies: list[str]
) -> None:
    assert list(uncopied({SOURCE: values, TARGET: copies})) == anomalies
