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
A partition that is named more than once is answered once, with INVALID_REQUEST. Searches by time stop at the first
record that fits, and take turns with other requests where they are long.
Versions: flexible from 6; leader epochs from 4.
"""

import asyncio
from enum import Enum, auto

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from kavka_broker.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each
from kavka_broker.storage.time_search import find_by_timestamp, max_timestamp

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
Wanted = dict[str, dict[int, ListOffsetsPartition | None]]
PARTITION_COST = 15  # of a slice


class Reach(Enum):
    """The end of the log as a client of this kind may see it."""

    STABLE = auto()
    COMMITTED = auto()
    LOG_END = auto()  # a follower


@api(
    ListOffsetsRequest,
    ListOffsetsResponse,
    versions=(1, 11),
    each=(Each("topics.partitions", "topics.partitions", per_turn=100),),
)
def list_offsets(
    request: ListOffsetsRequest, broker: Broker, client: Client
) -> ListOffsetsResponse | asyncio.Task[ListOffsetsResponse]:
    return broker.slices.run(answer(request, broker, client))


def answer(request: ListOffsetsRequest, broker: Broker, client: Client) -> Work[ListOffsetsResponse]:
    cost, reach = Cost(), reach_of(request)
    wanted = yield from partitions_of(request, cost)
    topics = list[ListOffsetsTopicResponse]()
    for name, partitions in wanted.items():
        answers = list[ListOffsetsPartitionResponse]()
        for index, partition in partitions.items():
            if partition is None:
                answers.append(ListOffsetsPartitionResponse(index, ErrorCode.INVALID_REQUEST))
            else:
                answers.append((yield from look_up(name, partition, reach, broker, client, cost)))
            if cost.add(PARTITION_COST):
                yield
        topics.append(ListOffsetsTopicResponse(name, answers))
    return ListOffsetsResponse(topics=topics)


def partitions_of(request: ListOffsetsRequest, cost: Cost) -> Work[Wanted]:
    """The requested partitions by topic and index; None for one that is named more than once."""
    wanted: Wanted = {}
    for topic in request.topics:
        partitions = wanted.setdefault(topic.name, {})
        for partition in topic.partitions:
            index = partition.partition_index
            partitions[index] = None if index in partitions else partition
            if cost.add(1):
                yield
    return wanted


def look_up(
    topic: str, wanted: ListOffsetsPartition, reach: Reach, broker: Broker, client: Client, cost: Cost
) -> Work[ListOffsetsPartitionResponse]:
    try:
        partition = broker.partitions.leader(topic, wanted.partition_index, wanted.current_leader_epoch)
        offset, timestamp_ms, leader_epoch = yield from find(partition, wanted.timestamp, reach, cost)
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
    """Raises OFFSET_NOT_AVAILABLE while a new leader has a high watermark below the start of its epoch."""
    leadership = partition.leadership
    if reach is not Reach.LOG_END and leadership is not None and leadership.start_offset > partition.high_watermark:
        raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE)


def find(partition: Partition, timestamp_ms: int, reach: Reach, cost: Cost) -> Work[Found]:
    """The offset for a timestamp; a negative one stands for a place, such as the latest. Raises BrokerError."""
    log = partition.log
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return log.log_start_offset, -1, log.epochs.epoch_at(log.log_start_offset)
    if timestamp_ms in TIERED:
        return NOT_FOUND
    if timestamp_ms == LATEST:
        check_end(partition, reach)
        return end_of(partition, reach), -1, partition.leader_epoch
    if timestamp_ms < MAX_TIMESTAMP:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
    if timestamp_ms == MAX_TIMESTAMP:
        found = yield from max_timestamp(log, cost)
    else:
        found = yield from find_by_timestamp(log, timestamp_ms, cost)
    if found is not None and found[0] < end_of(partition, reach):
        return found
    check_end(partition, reach)
    return NOT_FOUND
