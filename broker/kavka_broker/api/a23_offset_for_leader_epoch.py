"""OffsetForLeaderEpoch (23): where the records of a leader epoch end.

A consumer asks after a change of leader whether what it has read is still in the log (KIP-320); a follower asks where
to truncate (KIP-101). Answered with the largest epoch not above the asked one, and the offset at which it ends.
An epoch that this log has never seen is answered with -1, -1.
Versions: flexible from 4.
"""

from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from kavka_broker.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each


@api(
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    versions=(2, 4),
    each=(Each("topics.partitions", "topics.partitions", per_turn=100),),
)
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, broker: Broker, client: Client
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic, [look_up(topic.topic, wanted, broker) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def look_up(topic: str, wanted: OffsetForLeaderPartition, broker: Broker) -> EpochEndOffset:
    try:
        partition = broker.partitions.leader(topic, wanted.partition, wanted.current_leader_epoch)
        epoch, end_offset = partition.log.epoch_end_offset(wanted.leader_epoch)
    except BrokerError as error:
        return EpochEndOffset(error.code, wanted.partition)
    return EpochEndOffset(0, wanted.partition, epoch, end_offset)
