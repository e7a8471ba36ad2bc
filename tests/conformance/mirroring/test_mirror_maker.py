"""MirrorMaker 2 with exactly-once between two clusters, both ways: while it is killed, and where one cluster is lost.

Its tasks copy records in transactions, and keep in the target's topics how far they are; offsets of groups are
translated and committed in the other cluster, where their members go on when theirs is gone.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.connect import MIRROR_MAKER, ConnectProgram, write_properties
from tests.support.reading import read_committed
from tests.support.servers import Server, free_port, start_apache_kafka, start_kavka
from tests.support.topics import create_topic, metadata

pytestmark = [pytest.mark.java, pytest.mark.slow]

Record = tuple[bytes, bytes, tuple[tuple[str, bytes], ...]]  # key, value, headers
Start = Callable[[Path, Mapping[str, str]], Server]

TOPIC: Final = "orders"
PARTITIONS: Final = 2
GROUP: Final = "shipping"
ROUND: Final = 1_000
SECONDS_MAX: Final = 150.0
POLL_SECONDS: Final = 1.0
QUIET: Final = {"log_level": 0}
SETTINGS: Final = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
PAGE: Final = Path(__file__).parents[3] / "docs/how-to/mirror.md"


@pytest.fixture(
    params=[(start_kavka, start_apache_kafka), (start_kavka, start_kavka)], ids=["Kavka and Kafka", "two Kavkas"]
)
def clusters(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    east, west = (start(tmp_path / name, SETTINGS) for name, start in zip(("east", "west"), request.param, strict=True))
    try:
        yield east, west
    finally:
        east.kill()
        west.kill()


def test_records_and_offsets_come_once(clusters: tuple[Server, Server], tmp_path: Path) -> None:
    east, west = clusters
    mirror = ConnectProgram(MIRROR_MAKER, configured(tmp_path, east, west), tmp_path / "mirror-maker.log")
    for server in clusters:
        create_topic(server, TOPIC, PARTITIONS)
    write(east, 0)
    write(west, 0)
    done = consume(east, TOPIC, ROUND // 2)
    try:
        mirror.start()
        are_mirrored(mirror, east, west)
        mirror.kill()
        write(east, 1)  # nobody is there to copy
        mirror.start()
        until(mirror, "some of what came meanwhile is copied", lambda: size(west, f"east.{TOPIC}") > ROUND)
        mirror.kill()
        write(east, 2)
        mirror.start()
        are_mirrored(mirror, east, west)
        done += consume(east, TOPIC, ROUND)
        until(mirror, "the group's offsets are translated", lambda: passed(west, f"east.{TOPIC}") > ROUND)
    finally:
        mirror.kill()
    east.kill()
    rest = consume(west, f"east.{TOPIC}", 3 * ROUND - passed(west, f"east.{TOPIC}"))
    assert {*done, *rest} == {record(round_number, number) for round_number in range(3) for number in range(ROUND)}
    assert len(done) + len(rest) < 4 * ROUND, "what was read long before the failover is not read again"


def are_mirrored(mirror: ConnectProgram, east: Server, west: Server) -> None:
    """Wait until each topic's copy has all its records, once and in their order."""
    is_copied(mirror, east, west, f"east.{TOPIC}")
    is_copied(mirror, west, east, f"west.{TOPIC}")


def is_copied(mirror: ConnectProgram, source: Server, target: Server, copy: str) -> None:
    until(mirror, f"{copy} has as many records", lambda: size(target, copy) >= size(source, TOPIC))
    for index in range(PARTITIONS):
        assert records(target, copy, index) == records(source, TOPIC, index)


def configured(directory: Path, east: Server, west: Server) -> Path:
    """The properties that the page shows, with the addresses and for one broker."""
    properties = dict(re.findall(r"^([a-z][^=#\n]*)=(.*)$", block(PAGE, "properties"), re.MULTILINE))
    assert properties["east.bootstrap.servers"] == "east.example.com:9092"
    copies = {key: "1" for key in properties if key.endswith("replication.factor")}
    places = {"east.bootstrap.servers": east.bootstrap, "west.bootstrap.servers": west.bootstrap}
    listener = {"listeners": f"http://127.0.0.1:{free_port()}"}
    return write_properties(directory / "mirror.properties", {**properties, **copies, **places, **listener})


def block(page: Path, language: str) -> str:
    """The first block of a page that is in this language."""
    found = re.search(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, page
    return found[1]


def until(mirror: ConnectProgram, what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"not within {SECONDS_MAX:g} s: {what}\n{mirror.last_lines()}"
        time.sleep(POLL_SECONDS)


# --- the clusters as clients see them -------------------------------------------------------------------------------


def record(round_number: int, number: int) -> Record:
    return f"key {number % 7}".encode(), f"{round_number}/{number}".encode(), (("number", str(number).encode()),)


def write(server: Server, round_number: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True, **QUIET})
    for number in range(ROUND):
        key, value, headers = record(round_number, number)
        producer.produce(TOPIC, value, key, headers=list(headers))
    assert producer.flush(SECONDS_MAX) == 0


def as_record(message: confluent_kafka.Message) -> Record:
    headers = tuple(
        (str(name), bytes(value)) for name, value in cast("list[tuple[str, bytes]]", message.headers() or [])
    )
    return bytes(message.key() or b""), bytes(message.value() or b""), headers


def member_of_the_group(server: Server) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **QUIET,
        }
    )


def consume(server: Server, topic: str, count: int) -> list[Record]:
    """The next records that the group reads, and commits."""
    member = member_of_the_group(server)
    member.subscribe([topic])
    found: list[Record] = []
    while len(found) < count:
        message = member.poll(SECONDS_MAX)
        assert message is not None, f"{len(found)} of {count} records after {SECONDS_MAX:g} s"
        if message.error() is None:
            found.append(as_record(message))
    member.commit(asynchronous=False)
    member.close()
    return found


def records(server: Server, topic: str, index: int, until_offset: int = sys.maxsize) -> list[Record]:
    """The committed records of a partition, below an offset."""
    return [as_record(one) for one in read_committed(server, topic, index) if (one.offset() or 0) < until_offset]


def size(server: Server, topic: str) -> int:
    """How many committed records a topic has; 0 where it is not there."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, **QUIET})
    is_there = metadata(admin, topic).topics[topic].error is None
    return sum(len(records(server, topic, index)) for index in range(PARTITIONS)) if is_there else 0


def passed(server: Server, topic: str) -> int:
    """How many records of a topic the group has behind it. Offsets count the ends of transactions, too."""
    member = member_of_the_group(server)
    places = member.committed([TopicPartition(topic, index) for index in range(PARTITIONS)], SECONDS_MAX)
    member.close()
    return sum(len(records(server, topic, place.partition, place.offset)) for place in places)
