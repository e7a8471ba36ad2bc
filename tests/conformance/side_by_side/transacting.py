"""Transactions that are committed, aborted or left open, and what readers of committed records make of them."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

import confluent_kafka

from tests.support.programs import kafka_tool

TOPIC: Final = "tx"
OPEN_TOPIC: Final = "tx-open"
JAVA_TOPIC: Final = "tx-java"
RECORDS: Final = 20
SECONDS_MAX: Final = 60.0
#: Nobody aborts an open transaction by itself while a test runs.
TIMEOUT_MS: Final = 900_000


def transactional(bootstrap: str, transactional_id: str) -> confluent_kafka.Producer:
    """A producer that has fenced and ended what its id has left open."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TIMEOUT_MS,
            "reconnect.backoff.max.ms": 500,
        }
    )
    producer.init_transactions(SECONDS_MAX)
    return producer


def write(producer: confluent_kafka.Producer, word: str, partition: int = 0, topic: str = TOPIC) -> None:
    """The records of one transaction, which stays open."""
    producer.begin_transaction()
    for _ in range(RECORDS):
        producer.produce(topic, word.encode(), partition=partition)
    assert producer.flush(SECONDS_MAX) == 0


def commit(producer: confluent_kafka.Producer, word: str, partition: int = 0, topic: str = TOPIC) -> None:
    write(producer, word, partition, topic)
    producer.commit_transaction(SECONDS_MAX)


def abort(producer: confluent_kafka.Producer, word: str, partition: int = 0, topic: str = TOPIC) -> None:
    write(producer, word, partition, topic)
    producer.abort_transaction(SECONDS_MAX)


def write_plainly(bootstrap: str, word: str, topic: str = TOPIC) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for _ in range(RECORDS):
        producer.produce(topic, word.encode(), partition=0)
    assert producer.flush(SECONDS_MAX) == 0


def produce_by_java(bootstrap: str, records: int) -> None:
    """Transactions of version 2, in which the leader adds its partition, and every one has an epoch of its own."""
    kafka_tool(
        "producer-perf-test", "--bootstrap-server", bootstrap, "--topic", JAVA_TOPIC,
        "--num-records", str(records), "--record-size", "100", "--throughput", "1000",
        "--transactional-id", "java", "--transaction-duration-ms", "100",
    )  # fmt: skip


def seen(bootstrap: str, partition: int = 0, topic: str = TOPIC, isolation: str = "read_committed") -> dict[str, int]:
    """How often each word is read, up to the end that a reader of this isolation level has."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    words: Counter[str] = Counter()
    try:
        while True:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None, f"neither records nor the end after {SECONDS_MAX:g} s: {words}"
            error = message.error()
            if error is None:
                words[(message.value() or b"").decode()] += 1
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return dict(words)
    finally:
        consumer.close()


def expect(
    expected: Mapping[str, int],
    bootstrap: str,
    partition: int = 0,
    topic: str = TOPIC,
    isolation: str = "read_committed",
) -> None:
    """A commit is answered before its markers are written, so what is read comes to this a little later. It is never
    more than this.
    """
    deadline = time.monotonic() + SECONDS_MAX
    while (found := seen(bootstrap, partition, topic, isolation)) != expected:
        assert all(count <= expected.get(word, 0) for word, count in found.items()), f"{topic}-{partition}: {found}"
        assert time.monotonic() < deadline, f"{topic}-{partition} {isolation}: {found}"
