"""Retention deletes records of a topic that the audit's readers are about to read: what is left is read, and told."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kavka_operator.domain.access import OPEN
from kavka_operator.kafka import audit_topic
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.audit_topic import AuditTopic, read_trail
from tests.support.servers import Server
from tests.support.topics import create_topic

RECORDS = 1_500
SIZE = 3_000  # several fetches
BATCH = 10
LEFT_FROM = 1_205  # within a batch


def write(server: Server, topic: str, count: int = RECORDS) -> None:
    create_topic(server, topic)
    producer = Producer({"bootstrap.servers": server.bootstrap, "batch.num.messages": BATCH, "linger.ms": 1_000})
    for _ in range(count):
        producer.produce(topic, bytes(SIZE), partition=0)
    assert producer.flush(60) == 0


def delete(server: Server, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)


@pytest.fixture
def opened(server: Server) -> Iterator[Callable[[str], AuditTopic]]:
    found: list[AuditTopic] = []

    def opener(topic: str) -> AuditTopic:
        found.append(AuditTopic(server.bootstrap, OPEN, "", topic))
        return found[-1]

    yield opener
    for topic in found:
        topic.close()


def test_what_is_left_is_read_and_the_rest_is_told(
    server: Server, name: str, opened: Callable[[str], AuditTopic]
) -> None:
    write(server, name)
    topic = opened(name)
    assert (topic.ranges(), topic.begin(0)) == ([(0, 0, RECORDS)], 0)
    delete(server, name, LEFT_FROM)
    assert [record.offset for record in topic.read(0, 0, RECORDS)] == list(range(LEFT_FROM, RECORDS))
    assert topic.begin(0) == LEFT_FROM


def test_what_is_deleted_to_the_end_is_told(server: Server, name: str, opened: Callable[[str], AuditTopic]) -> None:
    write(server, name)
    topic = opened(name)
    delete(server, name, RECORDS)
    assert list(topic.read(0, 0, RECORDS)) == []
    assert topic.begin(0) == RECORDS


def test_a_topic_that_was_made_again_meanwhile_is_no_end_of_the_old_one(
    server: Server, name: str, opened: Callable[[str], AuditTopic]
) -> None:
    write(server, name)
    topic = opened(name)
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.delete_topics([name], operation_timeout=30)[name].result(30)
    write(server, name, 10)
    with pytest.raises(AdminError, match="ends before offset 700, which it had"):
        list(topic.read(0, 700, RECORDS))


def test_a_trail_is_not_judged_where_records_go_meanwhile(
    server: Server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What retention takes away is not to look as if somebody had cut it out."""
    write(server, name)
    monkeypatch.setattr(audit_topic, "TOPIC", name)
    monkeypatch.setattr(AuditTopic.__init__, "__defaults__", (name,))
    reading = read_trail(server.bootstrap, OPEN)
    offset = 0
    with pytest.raises(AdminError, match=f"was read while its oldest records were deleted, up to offset {LEFT_FROM}"):
        for found in reading:
            assert found.offset == offset
            offset += 1
            if offset == 10:
                delete(server, name, LEFT_FROM)
    assert offset < LEFT_FROM
