"""A producer that never rests, and what it was told: what is acknowledged must be there, and the gaps must be short."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.nodes import Nodes
from tests.support.servers import READY_SECONDS_MAX
from tests.support.topics import metadata

TOPIC = "t"
PARTITIONS = 3
SECONDS_MAX = 60.0
PAUSE_SECONDS = 0.015
QUIET = {"log_level": 0}


@dataclass(slots=True)
class Acknowledged:
    """One record, and when its acknowledgement came."""

    seconds: float
    partition: int
    offset: int
    value: bytes


@dataclass(slots=True)
class History:
    """Records that were produced, one after the other to every partition in turn."""

    nodes: Nodes
    topic: str = TOPIC
    partitions: int = PARTITIONS
    acknowledged: list[Acknowledged] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    produced: int = 0
    prefix: bytes = field(default_factory=lambda: b"%d-" % time.monotonic_ns())
    producer: confluent_kafka.Producer = field(init=False)

    def __post_init__(self) -> None:
        settings = {
            "bootstrap.servers": self.nodes.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
        }
        self.producer = confluent_kafka.Producer({**settings, **QUIET})

    def produce(self, seconds: float) -> None:
        """A record to each partition and a pause, for so long: some are always on their way, and brokers have time."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for partition in range(self.partitions):
                value = self.prefix + str(self.produced).encode()
                self.producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
                self.produced += 1
            self.producer.poll(0)
            time.sleep(PAUSE_SECONDS)

    def finish(self) -> None:
        assert self.producer.flush(SECONDS_MAX) == 0
        assert not self.failed
        assert len(self.acknowledged) == self.produced

    def longest_gap(self) -> float:
        """Seconds between two acknowledgements of one partition, the longest of all."""
        gaps = []
        for partition in range(self.partitions):
            times = sorted(one.seconds for one in self.acknowledged if one.partition == partition)
            gaps += [after - before for before, after in pairwise(times)]
        return max(gaps)

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failed.append(error.name())
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.acknowledged.append(Acknowledged(time.monotonic(), partition, offset, value))

    def check(self) -> None:
        """Every acknowledged record is where it was said to be, and nothing is there twice."""
        found = read_all(self.nodes)
        for one in self.acknowledged:
            assert found.get((one.partition, one.offset)) == one.value, f"{one} is lost"
        ours = [value for value in found.values() if value.startswith(self.prefix)]
        assert len(ours) == len(set(ours)) == self.produced


def read_all(nodes: Nodes) -> dict[tuple[int, int], bytes]:
    """Consume the topic in a group, until it is at its ends."""
    settings = {"bootstrap.servers": nodes.bootstrap, "group.id": f"g{time.monotonic_ns()}"}
    consumer = confluent_kafka.Consumer({**settings, "auto.offset.reset": "earliest", **QUIET})
    ends = sum(
        consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, partition), SECONDS_MAX)[1]
        for partition in range(PARTITIONS)
    )
    consumer.subscribe([TOPIC])
    found: dict[tuple[int, int], bytes] = {}
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < ends:
        assert time.monotonic() < deadline, f"{len(found)} of {ends} records read within {SECONDS_MAX:g} s"
        for message in consumer.consume(1000, 0.2):
            partition, offset, value = message.partition(), message.offset(), message.value()
            if message.error() is None and partition is not None and offset is not None and value is not None:
                found[partition, offset] = value
    consumer.close()
    return found


def create_topic(nodes: Nodes) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, **QUIET})
    within("all brokers", lambda: len(metadata(admin).brokers) == len(nodes.broker_ids))
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(SECONDS_MAX)
    within("in sync", lambda: is_whole(admin))
    return admin


def is_whole(admin: AdminClient) -> bool:
    partitions = partitions_of(admin)
    return len(partitions) == PARTITIONS and all(len(partition.isrs) == 3 for partition in partitions)


def partitions_of(admin: AdminClient) -> list[Any]:
    return list(metadata(admin, TOPIC).topics[TOPIC].partitions.values())


def busiest(admin: AdminClient, among: Iterable[int]) -> int:
    """The broker that leads most."""
    leaders = [one.leader for one in partitions_of(admin)]
    return max(among, key=leaders.count)


def within(what: str, condition: Callable[[], bool]) -> float:
    """Ask again until it is true; the seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + READY_SECONDS_MAX, f"not within {READY_SECONDS_MAX:g} s: {what}"
        time.sleep(0.02)
    return time.monotonic() - began
