"""kafka-python: produce, consume in a group, commit, resume; quotas with their defaults."""

import time

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import InvalidProducerEpochError, ProducerFencedError

from tests.conformance.clients.records import COUNT, FIRST_PART, PARTITIONS, RECORDS, Pair, assert_resumed
from tests.support.servers import Server

SECONDS_MAX = 60.0


def create(server: Server, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=server.bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    admin.close()


def produce(server: Server, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=server.bootstrap)
    sent = [producer.send(topic, value.encode(), key.encode()) for key, value in RECORDS]
    producer.flush(SECONDS_MAX)
    assert all(future.succeeded() for future in sent)
    producer.close()


def consume(server: Server, topic: str, group: str, count: int) -> list[Pair]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=server.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=20,
    )
    seen: list[Pair] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} records after {SECONDS_MAX:g} s"
        for messages in consumer.poll(timeout_ms=500, max_records=min(20, count - len(seen))).values():
            seen += [(message.key.decode(), message.value.decode()) for message in messages]
    consumer.commit()
    consumer.close()
    return seen


def test_produce_consume_commit_resume(server: Server, name: str) -> None:
    create(server, name)
    produce(server, name)
    first = consume(server, name, name, FIRST_PART)
    assert_resumed(first, consume(server, name, name, COUNT - FIRST_PART))


def transactional(server: Server, name: str) -> KafkaProducer:
    """A producer that has taken the transactional id over."""
    producer = KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=name)
    producer.init_transactions()
    return producer


def begin(producer: KafkaProducer, topic: str, value: str) -> None:
    """Begin a transaction and write to it."""
    producer.begin_transaction()
    producer.send(topic, value.encode(), partition=0).get(SECONDS_MAX)


def committed(server: Server, topic: str, count: int) -> tuple[list[str], KafkaConsumer]:
    """The first values that a reader of committed records gets, and that reader."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=server.bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        consumer_timeout_ms=SECONDS_MAX * 1000,
    )
    return [next(consumer).value.decode() for _ in range(count)], consumer


def test_a_producer_commits_aborts_and_is_fenced(server: Server, name: str) -> None:
    create(server, name)
    producer = transactional(server, name)
    for number in range(4):
        begin(producer, name, str(number))
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    found, consumer = committed(server, name, 2)
    assert found == ["0", "2"]
    part = TopicPartition(name, 0)
    position = consumer.position(part)
    for commits in (False, True):
        begin(producer, name, "with offsets")
        producer.send_offsets_to_transaction({part: OffsetAndMetadata(position, "", -1)}, name)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
        assert consumer.committed(part) == (position if commits else None)
    consumer.close()

    begin(producer, name, "of the former")
    next_one = transactional(server, name)
    with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
        producer.commit_transaction()
    begin(next_one, name, "of the next")
    next_one.commit_transaction()
    found, consumer = committed(server, name, 2)
    assert found == ["with offsets", "of the next"]
    consumer.close()
    producer.close(0)
    next_one.close()
