"""Copies records from one topic to another in transactions, with confluent-kafka (transaction version 1).

    python -m tests.conformance.transactions.copier BOOTSTRAP INPUT OUTPUT ID

ID is its transactional id and its group. Every fifth transaction is aborted on purpose, with the offsets that it has
sent, and its records are copied again. stdout: a line for each step, `Copier.java` writes the same.
"""

import sys
from collections.abc import Callable
from typing import Final, TypeVar

import confluent_kafka

T = TypeVar("T")

PER_TRANSACTION_MAX: Final = 10
ABORTED_EACH: Final = 5
SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.2


class Fatal(Exception):
    """The producer can do nothing more."""


class Copier:
    """A producer and a consumer with one aim."""

    def __init__(self, bootstrap: str, source: str, target: str, name: str) -> None:
        self._target = target
        common = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 500, "log_level": 0}
        self._consumer = confluent_kafka.Consumer(
            {
                **common,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        # With a callback no rebalance happens but in `consume`, so not between reading and committing.
        self._consumer.subscribe([source], on_assign=lambda consumer, parts: consumer.assign(parts))
        self._settings = {**common, "transactional.id": name, "linger.ms": 0}
        self._producer = self._begin_anew()
        self._transactions = 0

    def run(self) -> None:
        while True:
            messages = [one for one in self._consumer.consume(PER_TRANSACTION_MAX, POLL_SECONDS) if one.error() is None]
            if not messages:
                continue
            try:
                self._copy(messages)
            except Fatal as problem:
                say("fatal", problem)
                self._producer = self._begin_anew()
                self._rewind(messages)

    def _begin_anew(self) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer(self._settings)
        repeated(producer.init_transactions)
        say("started")
        return producer

    def _copy(self, messages: list[confluent_kafka.Message]) -> None:
        """One transaction. Raises Fatal."""
        self._transactions += 1
        aborts = self._transactions % ABORTED_EACH == 0
        try:
            self._producer.begin_transaction()
            for message in messages:
                value = (b"aborted " if aborts else b"copied ") + (message.value() or b"")
                self._producer.produce(self._target, value, message.key())
            self._send_offsets(messages)
            if aborts:
                self._producer.flush(SECONDS_MAX)
                self._abort(messages)
                say("aborted")
            else:
                repeated(self._producer.commit_transaction)
                say("committed", len(messages))
        except confluent_kafka.KafkaException as error:
            if error.args[0].fatal():
                raise Fatal(error.args[0].name()) from error
            say("failed", error.args[0].name())
            self._abort(messages)

    def _send_offsets(self, messages: list[confluent_kafka.Message]) -> None:
        offsets = list(following(messages).values())
        group = self._consumer.consumer_group_metadata()
        repeated(lambda seconds: self._producer.send_offsets_to_transaction(offsets, group, seconds))

    def _abort(self, messages: list[confluent_kafka.Message]) -> None:
        """Abort, and read on where the group stands. Raises Fatal."""
        try:
            repeated(self._producer.abort_transaction)
        except confluent_kafka.KafkaException as error:
            raise Fatal(error.args[0].name()) from error
        self._rewind(messages)

    def _rewind(self, messages: list[confluent_kafka.Message]) -> None:
        """Read again behind what is committed. A partition that is assigned anew meanwhile starts there by itself."""
        parts = [confluent_kafka.TopicPartition(one.topic, one.partition) for one in following(messages).values()]
        for part in repeated(lambda seconds: self._consumer.committed(parts, seconds)):
            part.offset = max(part.offset, 0)
            if part in self._consumer.assignment():
                self._consumer.seek(part)


def following(messages: list[confluent_kafka.Message]) -> dict[int, confluent_kafka.TopicPartition]:
    """The offsets behind these messages, by partition."""
    found = {}
    for message in messages:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None and offset is not None  # noqa: PT018
        found[partition] = confluent_kafka.TopicPartition(topic, partition, offset + 1)
    return found


def repeated(call: Callable[[float], T]) -> T:
    """Call again as long as the client says that this helps."""
    while True:
        try:
            return call(SECONDS_MAX)
        except confluent_kafka.KafkaException as error:
            problem = error.args[0]
            if not problem.retriable() or problem.txn_requires_abort() or problem.fatal():
                raise
            say("again", problem.name())


def say(*words: object) -> None:
    print(*words, flush=True)


if __name__ == "__main__":
    Copier(*sys.argv[1:5]).run()
