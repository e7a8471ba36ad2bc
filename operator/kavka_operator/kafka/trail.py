"""Reading the audit topic of a cluster from its beginning to the end that it has now."""

from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True)
class Read:
    """A record of the topic: its entry, or why it is none. `is_whole`: nothing of its partition has been deleted."""

    place: str  # partition and offset
    entry: Entry | None
    problem: str = ""
    is_whole: bool = True


def read_trail(bootstrap: str, security: Security) -> Iterator[Read]:
    """Give the records, by partition and offset. Raises AdminError."""
    try:
        with_topic = consumer(bootstrap, security)
        try:
            partitions = [
                TopicPartition(TOPIC, index) for index in sorted(with_topic.partitions_for_topic(TOPIC) or ())
            ]
            if not partitions:
                raise AdminError(f"there is no topic {TOPIC}, or it may not be read; kavka.audit.key.file makes it")
            begins, ends = with_topic.beginning_offsets(partitions), with_topic.end_offsets(partitions)
            for partition in partitions:
                yield from _of_partition(with_topic, partition, begins[partition], ends[partition])
        finally:
            with_topic.close()
    except kafka.errors.KafkaError as error:
        raise AdminError(f"{TOPIC} cannot be read: {error}") from error


def _of_partition(client: Any, partition: TopicPartition, begin: int, end: int) -> Iterator[Read]:
    client.assign([partition])
    client.seek(partition, begin)
    silent = 0
    while client.position(partition) < end:
        records = client.poll(timeout_ms=POLL_MS).get(partition, [])
        silent = 0 if records else silent + 1
        if silent > SILENT_POLLS_MAX:
            raise AdminError(f"{TOPIC}-{partition.partition} gives no record after {client.position(partition)}")
        for record in records:
            if record.offset < end:
                yield _read(record, is_whole=begin == 0)


def _read(record: Any, *, is_whole: bool) -> Read:
    place = f"{TOPIC}-{record.partition} at offset {record.offset}"
    try:
        return Read(place, entry_of(record.headers, record.value), is_whole=is_whole)
    except ValueError as problem:
        return Read(place, None, str(problem))
