"""ListOffsets (2): offsets by time.

| timestamp | offset |
|---|---|
| >= 0 | the first record with that timestamp or a later one; -1 where there is none |
| -1 | the end: the high watermark, for read_committed the last stable offset |
| -2 | the start of the log |
| -3 | the record with the largest timestamp (KIP-734) |
| -4 | the start of the log on this broker's disk: the start of the log, since nothing is tiered |
| -5, -6 | the end of what is tiered: -1, since nothing is |

Versions: flexible from 6; leader epochs from 4.
"""

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

Found = tuple[int, int, int]  # offset, timestamp_ms, leader_epoch
NOT_FOUND: Found = (-1, -1, -1)


@api(ListOffsetsRequest, ListOffsetsResponse, versions=(1, 11))
def list_offsets(request: ListOffsetsRequest, broker: Broker, client: Client) -> ListOffsetsResponse:
    is_committed_only = request.isolation_level == READ_COMMITTED
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [look_up(topic.name, wanted, is_committed_only, broker, client) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def look_up(
    topic: str, wanted: ListOffsetsPartition, is_committed_only: bool, broker: Broker, client: Client
) -> ListOffsetsPartitionResponse:
    try:
        partition = broker.replicas.leader(topic, wanted.partition_index)
        partition.check_epoch(wanted.current_leader_epoch)
        offset, timestamp_ms, leader_epoch = find(partition, wanted.timestamp, is_committed_only)
    except BrokerError as error:
        return ListOffsetsPartitionResponse(wanted.partition_index, error.code)
    told_epoch = leader_epoch if client.version >= EPOCHS_FROM else -1
    return ListOffsetsPartitionResponse(wanted.partition_index, 0, timestamp_ms, offset, told_epoch)


def find(partition: Partition, timestamp_ms: int, is_committed_only: bool) -> Found:
    log = partition.log
    end = partition.last_stable_offset if is_committed_only else partition.high_watermark
    if timestamp_ms == LATEST:
        return end, -1, partition.leader_epoch
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return log.log_start_offset, -1, log.epoch_at(log.log_start_offset)
    if timestamp_ms in TIERED:
        return NOT_FOUND
    if timestamp_ms < MAX_TIMESTAMP:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
    found = log.max_timestamp() if timestamp_ms == MAX_TIMESTAMP else log.find_by_timestamp(timestamp_ms)
    return NOT_FOUND if found is None or found[0] >= end else found
