"""`__consumer_offsets` that one product has cleaned, loaded by the other: each group is where it committed last.

Groups commit again and again, some partitions' offsets are deleted, one group goes altogether. Apache Kafka writes and
cleans the topic, Kavka loads it, goes on, and cleans it in its turn; Apache Kafka loads that.
"""

from pathlib import Path
from typing import Final

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.side_by_side.products import KAFKA, KAVKA, become
from tests.conformance.storage.compacting import (
    NEVER,
    SETTINGS,
    active_base,
    alter,
    clean,
    on_disk,
    running,
)
from tests.support.committed import committed as committed_by
from tests.support.servers import Server, start_apache_kafka
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

OFFSETS: Final = "__consumer_offsets"
TOPIC, PARTITIONS = "read", 6
GROUPS: Final = ("one", "two", "three", "gone")
ROUNDS = 40
SECONDS_MAX = 60.0
DAY_MS: Final = "86400000"
Committed = dict[str, dict[int, int]]


def commit(server: Server, group: str, first: int, rounds: int = ROUNDS) -> None:
    """Rounds of commits of every partition, each with numbers of its own."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    for turn in range(first, first + rounds):
        offsets = [TopicPartition(TOPIC, number, 100 * turn + number) for number in range(PARTITIONS)]
        consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def committed(server: Server) -> Committed:
    """What the groups have committed, as the coordinator says; nothing of partitions without an offset."""
    wait_until_loaded(server)
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    known = {one.group_id for one in admin.list_consumer_groups().result(SECONDS_MAX).valid}
    found: Committed = {}
    for group in sorted(known & set(GROUPS)):
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(SECONDS_MAX)
        found[group] = {
            partition.partition: partition.offset for partition in asked.topic_partitions if partition.offset >= 0
        }
    return found


def wait_until_loaded(server: Server) -> None:
    """Wait until the coordinator answers: a server that has just started leads nothing yet."""
    asking = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": "judge"})
    try:
        committed_by(asking, [TopicPartition(TOPIC, 0)])
    finally:
        asking.close()


def delete(server: Server, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.delete_consumer_groups([group])[group].result(SECONDS_MAX)


def roll(server: Server) -> None:
    """A commit in a segment of its own: what was before it may be cleaned. Apache Kafka's broker heeds a setting a bit
    after it is told that it is set.
    """
    former = active_base(server, OFFSETS)
    alter(server, OFFSETS, segment_ms="1")
    commit(server, "three", 900, rounds=2)
    while active_base(server, OFFSETS) == former:
        commit(server, "three", 901, rounds=1)


def expected(first: int, *groups: str) -> Committed:
    last = {number: 100 * (first + ROUNDS - 1) + number for number in range(PARTITIONS)}
    return dict.fromkeys(groups, last) | {"three": {number: 90_100 + number for number in range(PARTITIONS)}}


def test_a_group_is_where_it_was_after_the_others_cleaning(tmp_path: Path) -> None:
    server = start_apache_kafka(tmp_path / "node", SETTINGS)
    try:
        create_topic(server, TOPIC, PARTITIONS)
        for group in GROUPS:
            commit(server, group, 0)
        delete(server, "gone")
        alter(server, OFFSETS, min_cleanable_dirty_ratio=NEVER, delete_retention_ms="0")
        roll(server)
        before = on_disk(server, OFFSETS).records
        clean(server, OFFSETS)
        assert len(on_disk(server, OFFSETS).records) < len(before) / 10
        assert committed(server) == expected(0, "one", "two")
    finally:
        server.stop()
    become(server, KAVKA)
    with running(server):
        assert committed(server) == expected(0, "one", "two"), "what Apache Kafka has cleaned"
        alter(server, OFFSETS, delete_retention_ms=DAY_MS)  # tombstones stay, however often the cleaner passes
        for group in ("one", "gone"):
            commit(server, group, 100)
        delete(server, "two")
        delete(server, "gone")
        roll(server)
        before = on_disk(server, OFFSETS).records
        clean(server, OFFSETS)
        assert len(on_disk(server, OFFSETS).records) < len(before) / 5
        assert committed(server) == expected(100, "one")
        assert sum(record.value is None for record in on_disk(server, OFFSETS).records) > PARTITIONS, (
            "tombstones of two groups"
        )
    become(server, KAFKA)
    with running(server):
        assert committed(server) == expected(100, "one"), "what Kavka has cleaned"
