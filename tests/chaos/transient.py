"""A topic that comes and goes while things break: created, written, read to its end, deleted, created again at once.

A topic is its id, so nobody may ever read a record of a former topic of the name, and each of them has what it has
acknowledged. It is deleted by its id: a request that a paused controller takes late must not hit the next one.
"""

import threading
import time
import traceback
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.chaos.nodes import Cluster
from tests.chaos.workload import QUIET
from tests.support.asking import ask

TOPIC: Final = "transient"
PARTITIONS: Final = 3
VALUES: Final = 300
ANSWER_SECONDS_MAX: Final = 5.0
DELIVERY_SECONDS_MAX: Final = 60.0
READING_SECONDS_MAX: Final = 60.0
RETRY_SECONDS: Final = 0.2


class Transient:
    """Works in a thread of its own. What must not be is told to `failures`; `topics` counts those that went well."""

    def __init__(self, cluster: Cluster, failures: list[str]) -> None:
        self.topics = 0
        self._cluster = cluster
        self._failures = failures
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="transient", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin no more."""
        self._is_stopping.set()

    def finish(self) -> None:
        """Wait for the last one. Raises AssertionError where no topic has come and gone in the whole run."""
        self.stop()
        self._thread.join()
        assert self.topics, "no topic came, was read to its end and went"

    def _run(self) -> None:
        try:
            former: set[bytes] = set()
            while not self._is_stopping.is_set():
                topic_id = self._create(former)
                if topic_id is not None and self._use(topic_id):
                    self.topics += 1
                if topic_id is not None:
                    former.add(topic_id)
                    self._delete(topic_id)
        except BaseException:
            self._failures.append(f"transient ended: {traceback.format_exc()}")
            raise

    # --- one of them --------------------------------------------------------------------------------------------

    def _use(self, topic_id: bytes) -> bool:
        """Whether every acknowledged record was read; unknown where reading does not come to its end."""
        acknowledged = self._write(topic_id.hex())
        found = self._read_all(acknowledged)
        if found is None:
            return False
        strangers = [value for value in found if not value.startswith(topic_id.hex())]
        missing = [value for value in acknowledged if value not in found]
        if strangers:
            self._failures.append(f"old-topic: {TOPIC} {topic_id.hex()} has {len(strangers)}, the first {strangers[0]}")
        if missing:
            self._failures.append(f"lost-write: {TOPIC} {topic_id.hex()} lacks {len(missing)}, the first {missing[0]}")
        return True

    def _write(self, mark: str) -> list[str]:
        acknowledged: list[str] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged.append((message.value() or b"").decode())

        producer = Producer({
            **QUIET, "bootstrap.servers": self._cluster.bootstrap, "acks": "all", "enable.idempotence": True,
            "message.timeout.ms": int(DELIVERY_SECONDS_MAX * 1000),
        })  # fmt: skip
        for number in range(VALUES):
            producer.produce(TOPIC, f"{mark}:{number}".encode(), partition=number % PARTITIONS, on_delivery=delivered)
        producer.flush(DELIVERY_SECONDS_MAX)
        return acknowledged

    def _read_all(self, wanted: list[str]) -> set[str] | None:
        """As `_read`, until all that is wanted is there: a new leader's high watermark may lag for a moment."""
        deadline = time.monotonic() + READING_SECONDS_MAX
        while True:
            found = self._read()
            if found is None or found.issuperset(wanted) or time.monotonic() > deadline:
                return found

    def _read(self) -> set[str] | None:
        """All values, from the beginning to the end of each partition; None where that takes too long."""
        consumer = Consumer({
            **QUIET, "bootstrap.servers": self._cluster.bootstrap, "group.id": "transient",
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "enable.partition.eof": True,
        })  # fmt: skip
        found, ended = set[str](), set[int]()
        deadline = time.monotonic() + READING_SECONDS_MAX
        try:
            consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
            while len(ended) < PARTITIONS and time.monotonic() < deadline:
                for message in consumer.consume(500, timeout=0.5):
                    error, partition = message.error(), message.partition()
                    if error is None:
                        found.add((message.value() or b"").decode())
                    elif error.code() == KafkaError._PARTITION_EOF and partition is not None:
                        ended.add(partition)
        finally:
            consumer.close()
        return found if len(ended) == PARTITIONS else None

    # --- coming and going ---------------------------------------------------------------------------------------

    def _create(self, former: set[bytes]) -> bytes | None:
        """The id of the new topic, as soon as a broker knows it; None where the run ends before."""
        config = CreatableTopicConfig("min.insync.replicas", "2")
        request = CreateTopicsRequest([CreatableTopic(TOPIC, PARTITIONS, 3, [], [config])], 5_000)
        for address in self._addresses():
            try:
                ask(address, request, CreateTopicsResponse, None, ANSWER_SECONDS_MAX)
                found = self._known_id(address)
            except OSError:
                continue
            if found is not None and found not in former:
                return found
        return None

    def _known_id(self, address: tuple[str, int]) -> bytes | None:
        wanted = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
        seen = ask(address, wanted, MetadataResponse, None, ANSWER_SECONDS_MAX).topics[0]
        return seen.topic_id if seen.error_code == ErrorCode.NONE else None

    def _delete(self, topic_id: bytes) -> None:
        """Wait until a broker reports that the topic is gone."""
        request = DeleteTopicsRequest([DeleteTopicState(None, topic_id)], [], 5_000)
        for address in self._addresses():
            try:
                code = ask(address, request, DeleteTopicsResponse, None, ANSWER_SECONDS_MAX).responses[0].error_code
            except OSError:
                continue
            if code in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID}:
                return

    def _addresses(self) -> Iterator[tuple[str, int]]:
        """One node after the other, with pauses, until the run ends."""
        number = 0
        while not self._is_stopping.is_set():
            yield self._cluster.nodes[number % len(self._cluster.nodes)].address
            number += 1
            self._is_stopping.wait(RETRY_SECONDS)
