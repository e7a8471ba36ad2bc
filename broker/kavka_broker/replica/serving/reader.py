"""What a fetch gets of each of its partitions: a consumer what is committed, a follower all (`follower_reads`)."""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.config.topic_table import LONG_MAX
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_response import AbortedTransaction, PartitionData
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.serving.follower_reads import diverging_epoch, read_as_follower
from kavka_broker.replica.serving.partition_data import has_diverged, size_of
from kavka_broker.replica.serving.pending_fetch import Follower, Poll, Reading
from kavka_broker.replica.serving.read_replica import preferred_replica
from kavka_broker.replica.serving.txn_index_check import is_proven
from kavka_broker.storage.log import Chunk

READ_TOGETHER: Final = 25
PARTITION_COST: Final = 12  # of a slice
UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
#: Errors of partitions that Apache Kafka does not begin to read.
UNREAD: Final = (*UNKNOWN, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class Reader:
    """Reads the partitions of this broker for polls."""

    def __init__(self, node_id: int, replicas: ReplicaManager, metadata: Metadata) -> None:
        self._node_id = node_id
        self._partitions = replicas.partitions
        self._throttles = replicas.throttles
        self._metadata = metadata

    def read_in_slices(self, poll: Poll, *, watches: bool) -> Work[Reading]:
        """Read all partitions of the poll in slices. With `watches` the poll's waiter watches each partition."""
        reading, cost, partitions = poll.begun(), Cost(), list(poll.partitions)
        for start in range(0, len(partitions), READ_TOGETHER):
            size_bytes, served = reading.size_bytes, len(reading.served)
            self.read(partitions[start : start + READ_TOGETHER], poll, reading)
            if watches and poll.waiter is not None:
                for partition in reading.watched:
                    poll.waiter.watch(partition.watched(stable_only=poll.is_committed_only))
                poll.waiter.progressed(reading.size_bytes - size_bytes)
            reading.watched.clear()
            if cost.add(PARTITION_COST * (len(reading.served) - served)):
                yield
        return reading

    def read(self, partitions: Iterable[SessionPartition], poll: Poll, reading: Reading) -> None:
        """Read these partitions of the poll into `reading`."""
        read = self._read_as_consumer if poll.follower is None else self._read_as_follower
        for asked in partitions:
            try:
                partition = self._find(asked, poll)
                data = read(partition, asked, poll, reading)
            except BrokerError as error:
                # librdkafka cannot read records that are null instead of empty: it would never see the error.
                data = PartitionData(asked.index, error.code, -1, records=b"")
                if error.code not in UNREAD:  # as in Kafka, where only a partition that is not read has an empty list
                    data.aborted_transactions = None
                # A follower asks for nothing that is unknown for long: it gets the error at once and retries.
                reading.unknown_count += error.code in UNKNOWN
                is_calm = error.code in UNKNOWN or (poll.is_withheld and error.code is ErrorCode.KAFKA_STORAGE_ERROR)
                reading.is_due = reading.is_due or poll.follower is not None or not is_calm
            else:
                _take_note(partition, asked, data, poll, reading)
            reading.served.append((asked, data))

    def _find(self, asked: SessionPartition, poll: Poll) -> Partition:
        topic = asked.topic
        if isinstance(topic, bytes):
            known = self._metadata.topics.by_id(topic)
            if known is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
            topic = known.name
        if poll.refuses is not None and (code := poll.refuses(topic)) is not None:
            raise BrokerError(code)
        look_up = self._partitions.replica if poll.reads_followers else self._partitions.leader
        return look_up(topic, asked.index, asked.position.current_leader_epoch)

    def _read_as_follower(
        self, partition: Partition, asked: SessionPartition, poll: Poll, reading: Reading
    ) -> PartitionData:
        assert poll.follower is not None
        bytes_max, at_least_one = poll.bytes_max - reading.size_bytes, not reading.size_bytes
        data = self._feed(partition, asked, poll.follower, bytes_max, at_least_one, has_waited=poll.has_waited)
        # DeleteRecords waits until followers have heard of the log's start.
        reading.is_due |= has_diverged(data) or -1 < asked.log_start_offset < data.log_start_offset
        return data

    def _feed(
        self,
        partition: Partition,
        asked: SessionPartition,
        follower: Follower,
        bytes_max: int,
        at_least_one: bool,
        *,
        has_waited: bool,
    ) -> PartitionData:
        """Read for a follower; no records where throttled replication has no room for them now (KIP-73)."""
        throttle = self._throttles.of_followers(partition)
        if throttle is not None and follower.broker_id not in partition.isr and throttle.is_exceeded:
            bytes_max, at_least_one = 0, False
        data = read_as_follower(partition, asked, follower, bytes_max, at_least_one, has_waited=has_waited)
        if throttle is not None:
            throttle.record(size_of(data))
        return data

    def _read_as_consumer(
        self, partition: Partition, asked: SessionPartition, poll: Poll, reading: Reading
    ) -> PartitionData:
        position, is_committed_only = asked.position, poll.is_committed_only
        high_watermark, last_stable_offset = partition.high_watermark, partition.last_stable_offset
        data = PartitionData(
            asked.index,
            0,
            high_watermark,
            last_stable_offset,
            partition.log.state.start_offset,
            aborted_transactions=[] if is_committed_only else None,
            records=b"",
        )
        if poll.rack and partition.is_leader:
            brokers = self._metadata.brokers
            elsewhere = preferred_replica(partition, position.fetch_offset, poll.rack, brokers, self._node_id)
            if elsewhere is not None:
                data.preferred_read_replica, reading.is_due = elsewhere, True
                return data
        if position.last_fetched_epoch >= 0:
            diverging = diverging_epoch(partition, position.last_fetched_epoch, position.fetch_offset)
            if diverging is not None:
                data.diverging_epoch, reading.is_due = diverging, True
                return data
        upper_offset = last_stable_offset if is_committed_only else high_watermark
        if position.fetch_offset == upper_offset:
            return data
        allowed_bytes = max(0, min(position.partition_max_bytes, poll.bytes_max - reading.size_bytes))
        chunk = _read_limited(partition, position.fetch_offset, allowed_bytes, upper_offset, reading)
        if not is_committed_only or is_proven(partition, position.fetch_offset):
            data.records = chunk.parts
            if is_committed_only and partition.log.segments.has_aborted:
                data.aborted_transactions = _aborted_in(partition, position.fetch_offset, chunk)
        return data


def _read_limited(
    partition: Partition, fetch_offset: int, allowed_bytes: int, upper_offset: int, reading: Reading
) -> Chunk:
    """Read, of a topic or a partition whose consumers have a limit, at most a second's worth for one answer."""
    config, at_least_one = partition.log.config, not reading.size_bytes
    limit_bytes = min(config.kavka_topic_consumer_byte_rate, config.kavka_partition_consumer_byte_rate)
    if limit_bytes == LONG_MAX:
        return partition.read(fetch_offset, allowed_bytes, upper_offset, at_least_one)
    taken_bytes = reading.of_limited.get(partition.topic, 0)
    room_bytes = max(0, min(limit_bytes, config.kavka_topic_consumer_byte_rate - taken_bytes))
    chunk = partition.read(fetch_offset, min(allowed_bytes, room_bytes), upper_offset, at_least_one)
    reading.of_limited[partition.topic] = taken_bytes + chunk.size_bytes
    reading.is_due |= room_bytes < allowed_bytes and chunk.end_offset < upper_offset  # waiting would not make more fit
    return chunk


def _take_note(
    partition: Partition, asked: SessionPartition, data: PartitionData, poll: Poll, reading: Reading
) -> None:
    """Count the bytes read, and let the poll hear of the partition's changes from now on."""
    size_bytes = size_of(data)
    if poll.feed is None:
        reading.watched.append(partition)
    else:
        poll.feed.listen(partition.waiters, asked)
        if not size_bytes and asked.position.fetch_offset < partition.log.log_end_offset:
            poll.feed.moved(asked)  # its records did not fit this time
    partition.traffic.fetches += 1
    if poll.follower is None:
        partition.traffic.bytes_out += size_bytes
    reading.size_bytes += size_bytes


def _aborted_in(partition: Partition, offset: int, chunk: Chunk) -> list[AbortedTransaction]:
    """Return the aborted transactions that the reader has to leave out of these records."""
    aborted = partition.log.reader.aborted_between(offset, chunk.end_offset)
    return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in aborted]
