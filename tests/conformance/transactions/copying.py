"""An application that copies records in transactions, as a process, and what its topics say at the end."""

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from kavka_broker.coordinator.partitioning import partition_of
from tests.support.nodes import Nodes
from tests.support.topics import metadata
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

INPUT: Final = "input"
OUTPUT: Final = "output"
NAME: Final = "copier"
PARTITIONS: Final = 3
SECONDS_MAX: Final = 60.0
QUIET: Final = {"log_level": 0}

PYTHON: Final = (sys.executable, "-m", "tests.conformance.transactions.copier")


def java_copier(path: str = "") -> tuple[str, ...]:
    """The command of the one with Apache Kafka's client, or with that of a class path."""
    return (*java("256M"), "-cp", path or class_path(), str(Path(__file__).with_name("Copier.java")))


@dataclass
class Application:
    """The process. It writes a line for each step to `log`."""

    command: tuple[str, ...]
    bootstrap: str
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        line = [*self.command, self.bootstrap, INPUT, OUTPUT, NAME]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(line, stdout=log, stderr=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def lines(self, word: str) -> list[str]:
        """The lines that begin with this word."""
        return [line for line in self.log.read_text().splitlines() if line.partition(" ")[0] == word]


class Topics:
    """The topics of the application, as others see them."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._admin = AdminClient({"bootstrap.servers": nodes.bootstrap, **QUIET})
        nodes.wait("all brokers", lambda: len(metadata(self._admin).brokers) == len(nodes.broker_ids))
        made = self._admin.create_topics([NewTopic(topic, PARTITIONS, 3) for topic in (INPUT, OUTPUT)])
        for future in made.values():
            future.result(SECONDS_MAX)
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": nodes.bootstrap, "enable.idempotence": True, **QUIET}
        )
        self.written = 0

    def write(self, count: int) -> None:
        """Write numbered records to the input."""
        for number in range(self.written, self.written + count):
            self._producer.produce(INPUT, str(number).encode(), str(number).encode(), partition=number % PARTITIONS)
        assert self._producer.flush(SECONDS_MAX) == 0
        self.written += count

    def are_in_sync(self) -> bool:
        topics = metadata(self._admin).topics.values()
        return all(len(one.isrs) == len(one.replicas) for topic in topics for one in topic.partitions.values())

    def leader(self, topic: str, partition: int) -> int:
        leader = metadata(self._admin).topics[topic].partitions[partition].leader
        assert isinstance(leader, int)
        return leader

    def coordinator(self, topic: str, name: str = NAME) -> int:
        """The broker that coordinates the application's transactions, or its group."""
        return self.leader(topic, partition_of(name, len(metadata(self._admin).topics[topic].partitions)))

    def committed(self) -> int:
        """How many records the group has behind it, of those that are stable."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self._nodes.bootstrap, "group.id": NAME, "isolation.level": "read_committed", **QUIET}
        )
        parts = [confluent_kafka.TopicPartition(INPUT, index) for index in range(PARTITIONS)]
        try:
            return sum(max(part.offset, 0) for part in consumer.committed(parts, SECONDS_MAX))
        except confluent_kafka.KafkaException as error:
            if error.args[0].retriable() or error.args[0].code() == confluent_kafka.KafkaError._TIMED_OUT:
                return -1
            raise
        finally:
            consumer.close()

    def read(self) -> Counter[str]:
        """The values of the output up to the stable end of each partition, with the number of each."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._nodes.bootstrap,
                "group.id": "judge",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])
        values: Counter[str] = Counter()
        ended: set[int | None] = set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None, f"neither records nor the end after {SECONDS_MAX:g} s"
            error = message.error()
            if error is None:
                values[(message.value() or b"").decode()] += 1
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
        consumer.close()
        return values
