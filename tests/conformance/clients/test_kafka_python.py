"""kafka-python: produce, consume in a group, commit, resume; quotas with their defaults."""

import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic

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
