"""librdkafka, whose transactions are of version 1, behind a network that delivers late what it has asked before.

Without the broker's look at connections a late EndTxn ends the next transaction half-way (ADR 0039). Here it is
refused, and no connection is closed that librdkafka still uses.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest

from tests.support.late_requests import LateRequests, late_requests
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

TOPIC: Final = "late"
PARTITIONS: Final = 2
REFUSALS: Final = 5  # as many are played, in at most so many transactions
TRANSACTIONS_MAX: Final = 1_000
SECONDS_MAX: Final = 60.0
QUIET: Final = {"log_level": 0, "reconnect.backoff.max.ms": 100}


class Application:
    """A producer, and what it was told of its transactions."""

    def __init__(self, bootstrap: str) -> None:
        self.committed: set[str] = set()
        self.aborted: set[str] = set()
        self.number = 0
        self._settings = {**QUIET, "bootstrap.servers": bootstrap, "transactional.id": "late", "linger.ms": 0}
        self._producer = self._begin_again()

    def _begin_again(self) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer(self._settings)
        repeated(producer.init_transactions)
        return producer

    def transact(self) -> None:
        """Write a value to each partition; one transaction of four is aborted."""
        self.number += 1
        values = {f"{self.number}.{partition}" for partition in range(PARTITIONS)}
        aborts = self.number % 4 == 0
        try:
            self._producer.begin_transaction()
            for value in sorted(values):
                self._producer.produce(TOPIC, value.encode(), partition=int(value[-1]))
            self._producer.flush(SECONDS_MAX)
            repeated(self._producer.abort_transaction if aborts else self._producer.commit_transaction)
            (self.aborted if aborts else self.committed).update(values)
        except confluent_kafka.KafkaException:
            # Its fate is not known, but to the next producer of the id: it goes on when that is over.
            self._producer = self._begin_again()


def repeated(call: Callable[[float], None]) -> None:
    """Ask again as long as that may help. Raises KafkaException."""
    while True:
        try:
            call(SECONDS_MAX)
            return
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable():
                raise


def refusals(server: Server) -> int:
    return sum("late_request.refused" in line for line in server.log_lines())


def read_committed(bootstrap: str) -> list[str]:
    """All values that a reader of committed records gets."""
    consumer = confluent_kafka.Consumer({
        **QUIET, "bootstrap.servers": bootstrap, "group.id": "judge", "isolation.level": "read_committed",
        "enable.partition.eof": True, "enable.auto.commit": False,
    })  # fmt: skip
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found, ended = list[str](), set[int | None]()
    while len(ended) < PARTITIONS:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"neither records nor the end after {SECONDS_MAX:g} s"
        if message.error() is None:
            found.append((message.value() or b"").decode())
        else:
            ended.add(message.partition())
    consumer.close()
    return found


def test_late_requests_of_librdkafka_end_no_other_transaction(tmp_path: Path) -> None:
    port = free_port()
    server = start_kavka(tmp_path / "broker", {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    try:
        with late_requests(LateRequests(server.address, seed=1), port) as proxy:
            create_topic(server, TOPIC, PARTITIONS)
            application = Application(f"127.0.0.1:{port}")
            while refusals(server) < REFUSALS and application.number < TRANSACTIONS_MAX:
                application.transact()
            proxy.is_at_work = False
            application.transact()
            assert refusals(server) >= REFUSALS, f"{proxy.late} requests were late, and none of them too late"
            assert proxy.refused == 0, "a connection was closed that its client used"
            found = read_committed(f"127.0.0.1:{port}")
        assert len(found) == len(set(found))
        assert application.committed <= set(found), "committed and lost"
        assert not application.aborted & set(found), "aborted and read"
        numbers = [value.partition(".")[0] for value in found]
        assert all(numbers.count(number) == PARTITIONS for number in numbers), "a transaction in parts"
    finally:
        server.kill()
