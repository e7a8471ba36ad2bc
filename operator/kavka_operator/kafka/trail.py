"""Reading the audit topic of a cluster: whole, as entries of chains, or on from an offset, as records."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import kafka.errors
from kafka import TopicPartition

from kavka_broker.core.audit.chain import Entry
from kavka_broker.core.audit.cloud_events import entry_of
from kavka_operator.domain.access import Security
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.connecting import consumer

TOPIC = "__audit_events"
ENTRIES_MAX = 1_000_000
"""Entries that are kept at once; a longer trail is refused."""
POLL_MS = 1_000
SILENT_POLLS_MAX = 30
NO_TOPIC = f"there is no topic {TOPIC}, or it may not be read; kavka.audit.key.file makes it"


@dataclass(frozen=True, slots=True)
class Read:
    """A record of the topic: its entry, or why it is none. `is_whole`: nothing of its partition has been deleted."""

    place: str  # partition and offset
    entry: Entry | None
    problem: str = ""
    is_whole: bool = True


class AuditTopic:
    """The audit topic, or another `topic`, as it is when this is made. Each method raises AdminError."""

    def __init__(self, bootstrap: str, security: Security, topic_id: str, topic: str = TOPIC) -> None:
        self.topic, self.topic_id = topic, topic_id
        self._client = consumer(bootstrap, security)
        with _told(topic):
            indexes = sorted(self._client.partitions_for_topic(topic) or ())
            self._partitions = [TopicPartition(topic, index) for index in indexes]
            self._begins = self._client.beginning_offsets(self._partitions)
            self._ends = self._client.end_offsets(self._partitions)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ranges(self) -> list[tuple[int, int, int]]:
        """Return each partition with its first offset and the one after its last."""
        return [(found.partition, self._begins[found], self._ends[found]) for found in self._partitions]

    def read(self, partition: int, first: int, until: int) -> Iterator[Any]:
        """Give the records from `first` to before `until`, by offset."""
        with _told(self.topic):
            yield from _records(self._client, TopicPartition(self.topic, partition), first, until)


@contextmanager
def _told(topic: str) -> Iterator[None]:
    try:
        yield
    except kafka.errors.KafkaError as error:
        raise AdminError(f"{topic} cannot be read: {error}") from error


def read_trail(bootstrap: str, security: Security) -> Iterator[Read]:
    """Give the records, by partition and offset. Raises AdminError."""
    topic = AuditTopic(bootstrap, security, "")
    try:
        if not topic.ranges():
            raise AdminError(NO_TOPIC)
        for partition, begin, end in topic.ranges():
            for record in topic.read(partition, begin, end):
                yield _read(record, is_whole=begin == 0)
    finally:
        topic.close()


def _records(client: Any, partition: TopicPartition, begin: int, end: int) -> Iterator[Any]:
    client.assign([partition])
    client.seek(partition, begin)
    silent = 0
    while client.position(partition) < end:
        records = client.poll(timeout_ms=POLL_MS).get(partition, [])
        silent = 0 if records else silent + 1
        if silent > SILENT_POLLS_MAX:
            raise AdminError(
                f"{partition.topic}-{partition.partition} gives no record after {client.position(partition)}"
            )
        for record in records:
            if record.offset < end:
                yield record


def _read(record: Any, *, is_whole: bool) -> Read:
    place = f"{TOPIC}-{record.partition} at offset {record.offset}"
    try:
        return Read(place, entry_of(record.headers, record.value), is_whole=is_whole)
    except ValueError as problem:
        return Read(place, None, str(problem))
