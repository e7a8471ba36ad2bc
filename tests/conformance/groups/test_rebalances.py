"""Real consumers come, go and are killed; the group shares its partitions among those that are there."""

from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conformance.groups.members import LIBRARIES, LONG_SESSION_MS, Fleet, eventually, fleet
from tests.support.committed import committed
from tests.support.servers import Server

PARTITIONS = 6
ALONE = [*LIBRARIES, "cooperative"]  # its protocol is one that the others do not speak
RECORDS = 600
SECONDS_MAX = 60.0

Start = Callable[..., Server]


def broker(start: Start) -> Server:
    return start(group_min_session_timeout_ms="1000")


def topic(server: Server, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(SECONDS_MAX)


def produce(server: Server, name: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(name, str(number), partition=number % PARTITIONS)
    assert producer.flush(SECONDS_MAX) == 0


def has_read_everything(members: Fleet, count: int) -> bool:
    return {(p, o) for p in range(PARTITIONS) for o in range(count // PARTITIONS)} <= set(members.reads())


@pytest.mark.slow
@pytest.mark.parametrize("libraries", [*([library] * 3 for library in ALONE), LIBRARIES], ids=[*ALONE, "mixed"])
@pytest.mark.extended
def test_members_come_leave_and_are_killed(start: Start, name: str, libraries: list[str]) -> None:
    server = broker(start)
    topic(server, name)
    produce(server, name)
    with fleet(server, name, name) as members:
        first = members.start(libraries[0])
        eventually("one member has all partitions", lambda: members.settled(6))
        members.start(libraries[1])
        eventually("two members share", lambda: members.settled(3, 3))
        third = members.start(libraries[2])
        eventually("three members share", lambda: members.settled(2, 2, 2))
        eventually("all records are read", lambda: has_read_everything(members, RECORDS))

        third.kill()
        members.remove(third)
        eventually("two take over from the one that was killed", lambda: members.settled(3, 3))
        first.leave()
        members.remove(first)
        eventually("one is left", lambda: members.settled(6))


@pytest.mark.parametrize("library", ["confluent_kafka", "kafka_python"])
def test_a_static_member_restarts_without_a_rebalance(start: Start, name: str, library: str) -> None:
    server = broker(start)
    topic(server, name)
    with fleet(server, name, name, session_ms=LONG_SESSION_MS) as members:
        stays = members.start(library, instance="stays")
        restarts = members.start(library, instance="restarts")
        eventually("two members share", lambda: members.settled(3, 3))
        share, assignments = restarts.assigned, stays.assignments
        restarts.kill()
        members.remove(restarts)
        again = members.start(library, instance="restarts")
        eventually("the same share again", lambda: again.assigned == share)
        assert stays.assignments == assignments


def test_the_broker_is_killed_and_the_group_goes_on(start: Start, name: str) -> None:
    server = broker(start)
    topic(server, name)
    produce(server, name)
    with fleet(server, name, name, session_ms=LONG_SESSION_MS) as members:
        members.start("confluent_kafka", "confluent_kafka")
        eventually("two members share", lambda: members.settled(3, 3))
        eventually("all records are read", lambda: has_read_everything(members, RECORDS))
        assignments = [member.assignments for member in members.members]
        server.kill()
        server.start()
        produce(server, name)
        eventually("the records behind the crash are read", lambda: has_read_everything(members, 2 * RECORDS))
        assert [member.assignments for member in members.members] == assignments, "nobody had to join again"


def test_committed_offsets_survive_a_killed_broker(start: Start, name: str) -> None:
    server = broker(start)
    topic(server, name)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": name})
    offsets = [confluent_kafka.TopicPartition(name, number, 10 + number) for number in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    server.kill()
    server.start()
    parts = [confluent_kafka.TopicPartition(name, number) for number in range(PARTITIONS)]
    found = committed(consumer, parts)
    assert [part.offset for part in found] == [10 + number for number in range(PARTITIONS)]
    consumer.close()
