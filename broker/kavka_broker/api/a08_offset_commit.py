"""OffsetCommit (8): remember how far a group has read.

- From a member: its generation must be the running one, and the commit counts as a heartbeat.
- From a member of the new protocol (KIP-848), from version 9 on: its epoch must be the one it is in, or one since which
  it has had all of the partitions (KIP-1251); STALE_MEMBER_EPOCH otherwise. So with a member of the classic protocol in
  such a group, of any version, but ILLEGAL_GENERATION.
- From anybody, with generation -1, while the group has no members; a group that does not exist begins to.
- A topic or partition that does not exist gets an error of its own, as does metadata that is too large.
- Answered when the offsets are committed in `__consumer_offsets`.
- Metadata of more than 128 characters takes 64 MiB for one partition of `__consumer_offsets`, beyond which what grows
  is OFFSET_METADATA_TOO_LARGE; names of groups with more than 249 take 32 MiB, beyond which one is POLICY_VIOLATION.
Versions: a retention time in 2 to 4, static members from 7, flexible from 8, GROUP_ID_NOT_FOUND from 9, topic ids
in 10.
"""

from collections.abc import Awaitable

from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.metadata.image.topics import Topic
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

TOPIC_ID_VERSION = 10

Outcome = tuple[Commit, OffsetCommitResponsePartition]


@api(
    OffsetCommitRequest,
    OffsetCommitResponse,
    versions=(2, 10),
    each=(Each("topics.partitions", "topics.partitions", per_turn=100),),
)
def offset_commit(
    request: OffsetCommitRequest, broker: Broker, client: Client
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    outcomes: list[Outcome] = []
    response = OffsetCommitResponse(
        topics=[answer_topic(topic, broker, client.version, outcomes) for topic in request.topics]
    )
    try:
        errors, waiting = broker.groups.shard(request.group_id).commit(
            request.group_id,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
            [commit for commit, _ in outcomes],
            request.retention_time_ms,
            client.version,
        )
    except BrokerError as error:
        return mark(response, outcomes, [error.code] * len(outcomes))
    mark(response, outcomes, errors)
    return response if waiting is None else when_committed(response, outcomes, waiting)


def answer_topic(
    topic: OffsetCommitRequestTopic, broker: Broker, version: int, outcomes: list[Outcome]
) -> OffsetCommitResponseTopic:
    """The answer for a topic; valid commits are added to `outcomes`, with the places of their errors."""
    topics = broker.metadata.topics
    known = topics.by_id(topic.topic_id) if version >= TOPIC_ID_VERSION else topics.get(topic.name)
    missing = ErrorCode.UNKNOWN_TOPIC_ID if version >= TOPIC_ID_VERSION else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = OffsetCommitResponseTopic(topic.name, topic.topic_id)
    for partition in topic.partitions:
        slot = OffsetCommitResponsePartition(partition.partition_index)
        answer.partitions.append(slot)
        if known is None:
            slot.error_code = missing
        elif partition.partition_index not in known.partitions:
            slot.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            outcomes.append((commit_of(known, partition), slot))
    return answer


def commit_of(topic: Topic, partition: OffsetCommitRequestPartition) -> Commit:
    return Commit(
        topic.name,
        partition.partition_index,
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata,
        topic.topic_id,
    )


def mark(response: OffsetCommitResponse, outcomes: list[Outcome], errors: list[ErrorCode]) -> OffsetCommitResponse:
    for (_, slot), error in zip(outcomes, errors, strict=True):
        slot.error_code = error
    return response


async def when_committed(
    response: OffsetCommitResponse, outcomes: list[Outcome], waiting: Waiting
) -> OffsetCommitResponse:
    error = await waiting
    for _, slot in outcomes:
        slot.error_code = slot.error_code or error
    return response
