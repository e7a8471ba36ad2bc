"""Reading the audit topic of a cluster: whole, as entries of chains, or on from an offset, as records."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import kafka.errors
from kafka import TopicPartition

from kavka_broker.core.audit.chain import Entry
from kavka_broker.core.audit.cloud_events import entry_of
from kavka_operator.domain.access import Security
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.connection import consumer
from kavka_operator.kafka.records import AnyBatch, PackedRecord, leave_packed

TOPIC = "__audit_events"
POLL_MS = 1_000
SILENT_POLLS_MAX = 30
NO_TOPIC = f"there is no topic {TOPIC}, or it may not be read; kavka.audit.key.file makes it"


@dataclass(frozen=True, slots=True)
class Read:
    """A record of the topic: its entry, or why it is none. `log_start` is the first offset of its partition."""

    partition: int
    offset: int
    entry: Entry | None
    problem: str = ""
    log_start: int = 0


class AuditTopic:
    """The audit topic, or another `topic`, as it is when this is made. Each method raises AdminError."""

    def __init__(self, bootstrap: str, security: Security, topic_id: str, topic: str = TOPIC) -> None:
        self.topic, self.topic_id = topic, topic_id
        self._client = leave_packed(consumer(bootstrap, security))
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

    def begin(self, partition: int) -> int:
        """Return the first offset of a partition: a later one than in `ranges` where `read` found records deleted."""
        found: int = self._begins[TopicPartition(self.topic, partition)]
        return found

    def read(self, partition: int, first: int, until: int) -> Iterator[PackedRecord]:
        """Give the records from `first` to before `until`, by offset, less those that are deleted before they are
        read: `begin` is then the first that was left.
        """
        for batch in self.batches(partition, first, until):
            begin = max(first, self.begin(partition))  # the batch that has it may have some before it
            yield from (record for record in batch.records() if begin <= record.offset < until)

    def batches(self, partition: int, first: int, until: int) -> Iterator[AnyBatch]:
        """Give the batches that have these records, by offset. The first and the last may have others too."""
        with _told(self.topic):
            yield from self._batches(TopicPartition(self.topic, partition), first, until)

    def _batches(self, partition: TopicPartition, first: int, until: int) -> Iterator[AnyBatch]:
        self._client.assign([partition])
        self._client.seek(partition, first)
        silent = 0
        while (position := self._client.position(partition)) < until:
            batches = deque(self._polled(partition, position))
            silent = 0 if batches else silent + 1
            if silent > SILENT_POLLS_MAX:
                raise AdminError(f"{self.topic}-{partition.partition} gives no record after {position}")
            while batches and batches[0].base_offset < until:
                yield batches.popleft()  # nothing here keeps what it unpacks

    def _polled(self, partition: TopicPartition, position: int) -> Sequence[AnyBatch]:
        try:
            return self._client.poll(timeout_ms=POLL_MS).get(partition) or ()
        except kafka.errors.OffsetOutOfRangeError as error:
            begin = self._client.beginning_offsets([partition])[partition]
            if begin <= position:
                raise AdminError(
                    f"{self.topic}-{partition.partition} ends before offset {position}, which it had: its end was cut"
                    " off, or the topic was made again; run it again"
                ) from error
            self._begins[partition] = begin
            self._client.seek(partition, begin)
            return ()


@contextmanager
def _told(topic: str) -> Iterator[None]:
    try:
        yield
    except kafka.errors.KafkaError as error:
        raise AdminError(f"{topic} cannot be read: {error}") from error


def place_of(partition: int, offset: int) -> str:
    """Return the place of a record in words."""
    return f"{TOPIC}-{partition} at offset {offset}"


def read_trail(bootstrap: str, security: Security) -> Iterator[Read]:
    """Give the records, by partition and offset. Raises AdminError."""
    with closing(AuditTopic(bootstrap, security, "")) as topic:
        for partition, begin, end in _ranges(topic):
            for record in topic.read(partition, begin, end):
                check_begin(partition, begin, topic.begin(partition))
                yield _read(record, begin)
            check_begin(partition, begin, topic.begin(partition))


def trail_ranges(bootstrap: str, security: Security) -> list[tuple[int, int, int]]:
    """Return each partition of the trail with its first offset and the one after its last. Raises AdminError."""
    with closing(AuditTopic(bootstrap, security, "")) as topic:
        return _ranges(topic)


def _ranges(topic: AuditTopic) -> list[tuple[int, int, int]]:
    """Raises AdminError where there is no topic."""
    found = topic.ranges()
    if not found:
        raise AdminError(NO_TOPIC)
    return found


def check_begin(partition: int, begin: int, now: int) -> None:
    """Raise AdminError where records were deleted before they were read: that would look as if they were cut out."""
    if now != begin:
        raise AdminError(
            f"{TOPIC}-{partition} was read while its oldest records were deleted, up to offset {now}; run it again"
        )


def _read(record: PackedRecord, log_start: int) -> Read:
    try:
        return Read(record.partition, record.offset, entry_of(record.headers, record.value), log_start=log_start)
    except ValueError as problem:
        return Read(record.partition, record.offset, None, str(problem))
