"""OffsetFetch (9): how far a group has read.

- Offset -1 stands for "nothing committed"; that is no error, and neither is a group that does not exist.
- Without topics (null): everything that the group has committed.
- Open transactions would make an offset unstable (`require_stable`); there are none yet.
- The member fields of version 9 belong to the consumer protocol (KIP-848); classic groups do not look at them.
Versions: errors stand at each partition in 1, at the top from 2; flexible from 6; many groups from 8; topic ids in 10.
"""

from collections.abc import Iterable, Iterator

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.division import Each
from kavka_broker.api.registry import api
from kavka_broker.core.group.offsets import Offsets
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUPS_VERSION = 8
TOPIC_ID_VERSION = 10
TOP_ERROR_VERSION = 2

NOTHING = OffsetCommitValue(offset=-1)


EACH = (
    Each("groups.topics.partition_indexes", "groups.topics.partitions", per_turn=100),
    Each("topics.partition_indexes", "topics.partitions", per_turn=100),
)


@api(OffsetFetchRequest, OffsetFetchResponse, versions=(1, 10), each=EACH)
def offset_fetch(request: OffsetFetchRequest, broker: Broker, client: Client) -> OffsetFetchResponse:
    if client.version < GROUPS_VERSION:
        return one_group(request, broker, client.version)
    return OffsetFetchResponse(groups=[answer_group(group, broker, client.version) for group in request.groups])


# --- one group, by name: versions below 8 ---------------------------------------------------------------------------


def one_group(request: OffsetFetchRequest, broker: Broker, version: int) -> OffsetFetchResponse:
    try:
        offsets = broker.groups.shard(request.group_id).image.offsets(request.group_id)
    except BrokerError as error:
        return refusal(request, error.code, version)
    wanted: Iterable[tuple[str, Iterable[int]]] = (
        offsets.items()
        if request.topics is None
        else ((topic.name, topic.partition_indexes) for topic in request.topics)
    )
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name,
                [
                    OffsetFetchResponsePartition(index, value.offset, value.leader_epoch, value.metadata)
                    for index, value in found(offsets, name, indexes)
                ],
            )
            for name, indexes in wanted
        ]
    )


def refusal(request: OffsetFetchRequest, code: ErrorCode, version: int) -> OffsetFetchResponse:
    if version >= TOP_ERROR_VERSION:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [OffsetFetchResponsePartition(index, -1, error_code=code) for index in topic.partition_indexes],
            )
            for topic in request.topics or []
        ]
    )


def found(offsets: Offsets, topic: str, indexes: Iterable[int]) -> Iterator[tuple[int, OffsetCommitValue]]:
    committed = offsets.get(topic, {})
    return ((index, committed.get(index, NOTHING)) for index in indexes)


# --- many groups, from version 8 ------------------------------------------------------------------------------------


def answer_group(group: OffsetFetchRequestGroup, broker: Broker, version: int) -> OffsetFetchResponseGroup:
    try:
        offsets = broker.groups.shard(group.group_id).image.offsets(group.group_id)
    except BrokerError as error:
        return OffsetFetchResponseGroup(group.group_id, error_code=error.code)
    if group.topics is None:
        topics = list(all_topics(offsets, broker, version))
    else:
        topics = [answer_topic(topic, offsets, broker, version) for topic in group.topics]
    return OffsetFetchResponseGroup(group.group_id, topics)


def all_topics(offsets: Offsets, broker: Broker, version: int) -> Iterator[OffsetFetchResponseTopics]:
    for name, committed in offsets.items():
        known = broker.metadata.topics.get(name)
        if known is not None:
            yield OffsetFetchResponseTopics(name, known.topic_id, places(offsets, name, committed))
        elif version < TOPIC_ID_VERSION:
            yield OffsetFetchResponseTopics(name, partitions=places(offsets, name, committed))


def answer_topic(
    topic: OffsetFetchRequestTopics, offsets: Offsets, broker: Broker, version: int
) -> OffsetFetchResponseTopics:
    if version < TOPIC_ID_VERSION:
        return OffsetFetchResponseTopics(topic.name, partitions=places(offsets, topic.name, topic.partition_indexes))
    known = broker.metadata.topics.by_id(topic.topic_id)
    if known is not None:
        partitions = places(offsets, known.name, topic.partition_indexes)
    else:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        partitions = [OffsetFetchResponsePartitions(i, -1, error_code=code) for i in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions)


def places(offsets: Offsets, topic: str, indexes: Iterable[int]) -> list[OffsetFetchResponsePartitions]:
    return [
        OffsetFetchResponsePartitions(index, value.offset, value.leader_epoch, value.metadata)
        for index, value in found(offsets, topic, indexes)
    ]
