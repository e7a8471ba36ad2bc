"""ListOffsets (2): offsets by time.

| timestamp | offset |
|---|---|
| >= 0 | the first record with that timestamp or a later one; -1 where there is none |
| -1 | the end: the high watermark, for read_committed the last stable offset |
| -2 | the start of the log |
| -3 | the record with the largest timestamp (KIP-734) |
| -4 | the start of the log on this broker's disk: the start of the log, since nothing is tiered |
| -5, -6 | the end of what is tiered: -1, since nothing is |

Only the leader answers. Right after its election its high watermark may lie before the start of its epoch: until its
followers have told it more, an end would go back, so there is none (OFFSET_NOT_AVAILABLE; before version 5
LEADER_NOT_AVAILABLE). What lies below that high watermark is found by its timestamp all the same.
Versions: flexible from 6; leader epochs from 4.
"""

from enum import Enum, auto

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import api
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from kavka_broker.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kavka_broker.replica.partition import Partition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
TIERED = (-5, -6)
READ_COMMITTED = 1
EPOCHS_FROM = 4
NOT_AVAILABLE_FROM = 5

Found = tuple[int, int, int]  # offset, timestamp_ms, leader_epoch
NOT_FOUND: Found = (-1, -1, -1)


class Reach(Enum):
    """How far into the log the one who asks may see."""

    STABLE = auto()
    COMMITTED = auto()
    LOG_END = auto()  # a follower


@api(ListOffsetsRequest, ListOffsetsResponse, versions=(1, 11))
def list_offsets(request: ListOffsetsRequest, broker: Broker, client: Client) -> ListOffsetsResponse:
    reach = reach_of(request)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [look_up(topic.name, wanted, reach, broker, client) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def look_up(
    topic: str, wanted: ListOffsetsPartition, reach: Reach, broker: Broker, client: Client
) -> ListOffsetsPartitionResponse:
    try:
        partition = broker.replicas.leader(topic, wanted.partition_index, wanted.current_leader_epoch)
        offset, timestamp_ms, leader_epoch = find(partition, wanted.timestamp, reach)
    except BrokerError as error:
        code = error.code
        if code == ErrorCode.OFFSET_NOT_AVAILABLE and client.version < NOT_AVAILABLE_FROM:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return ListOffsetsPartitionResponse(wanted.partition_index, code)
    told_epoch = leader_epoch if client.version >= EPOCHS_FROM else -1
    return ListOffsetsPartitionResponse(wanted.partition_index, 0, timestamp_ms, offset, told_epoch)


def reach_of(request: ListOffsetsRequest) -> Reach:
    if request.replica_id >= 0:
        return Reach.LOG_END
    return Reach.STABLE if request.isolation_level == READ_COMMITTED else Reach.COMMITTED


def end_of(partition: Partition, reach: Reach) -> int:
    if reach is Reach.LOG_END:
        return partition.log.log_end_offset
    return partition.last_stable_offset if reach is Reach.STABLE else partition.high_watermark


def check_end(partition: Partition, reach: Reach) -> None:
    """Raises OFFSET_NOT_AVAILABLE while a new leader does not know yet how far it is committed."""
    leadership = partition.leadership
    if reach is not Reach.LOG_END and leadership is not None and leadership.start_offset > partition.high_watermark:
        raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE)


def find(partition: Partition, timestamp_ms: int, reach: Reach) -> Found:
    log = partition.log
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return log.log_start_offset, -1, log.epoch_at(log.log_start_offset)
    if timestamp_ms in TIERED:
        return NOT_FOUND
    end = end_of(partition, reach)
    if timestamp_ms == LATEST:
        check_end(partition, reach)
        return end, -1, partition.leader_epoch
    if timestamp_ms < MAX_TIMESTAMP:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
    found = log.max_timestamp() if timestamp_ms == MAX_TIMESTAMP else log.find_by_timestamp(timestamp_ms)
    if found is not None and found[0] < end:
        return found
    check_end(partition, reach)
    return NOT_FOUND
