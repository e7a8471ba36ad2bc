"""OffsetFetch (9): how far a group has read.

- Offset -1 stands for "nothing committed"; that is no error, and neither is a group that does not exist.
- Without topics (null): everything that the group has committed.
- With `require_stable` (from 7), an offset that an open transaction may change is UNSTABLE_OFFSET_COMMIT (KIP-447).
- Of a group of the new protocol (KIP-848) a member that names itself, from version 9 on, must be in the epoch that it
  names: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH, of the classic protocol ILLEGAL_GENERATION. Classic groups do not look
  at that.
Versions: errors stand at each partition in 1, at the top from 2; flexible from 6; many groups from 8; topic ids in 10.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from kavka_broker.core.consumer_group.committing import check_fetcher
from kavka_broker.core.group.offsets import Offsets
from kavka_broker.core.group.transactional_offsets import Staged
from kavka_broker.core.streams_group.committing import check_fetcher as check_streams_fetcher
from kavka_broker.loop.slices import Cost, Work
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
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api, listing_where
from kavka_broker.request.split_requests import Each

GROUPS_VERSION = 8
MEMBER_VERSION = 9
TOPIC_ID_VERSION = 10
TOP_ERROR_VERSION = 2

NOTHING = OffsetCommitValue(offset=-1)


EACH = (
    Each("groups.topics.partition_indexes", "groups.topics.partitions", per_turn=100, once=True),
    Each("topics.partition_indexes", "topics.partitions", per_turn=100, once=True),
)


class Committed(NamedTuple):
    """The committed offsets of a group, those that are `staged` by open transactions, and whether these matter."""

    group_id: str
    by_topic: Offsets
    staged: Staged
    is_stable: bool

    def at(self, topic: str, index: int) -> tuple[OffsetCommitValue, ErrorCode]:
        """The committed offset now, or the error: either may have changed since the last slice."""
        if self.is_stable and self.staged.is_unstable(self.group_id, topic, index):
            return NOTHING, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return self.by_topic.get(topic, {}).get(index, NOTHING), ErrorCode.NONE


def offsets_of(group_id: str, broker: Broker, *, is_stable: bool) -> Committed:
    """Raises BrokerError."""
    shard = broker.groups.shard(group_id)
    return Committed(group_id, shard.offsets(group_id), shard.image.staged, is_stable)


def is_wide(request: OffsetFetchRequest) -> bool:
    """Whether a request is for all offsets that a group has."""
    return request.topics is None or any(group.topics is None for group in request.groups)


@api(OffsetFetchRequest, OffsetFetchResponse, versions=(1, 10), each=EACH)
@listing_where(is_wide)
def offset_fetch(
    request: OffsetFetchRequest, broker: Broker, client: Client
) -> OffsetFetchResponse | asyncio.Task[OffsetFetchResponse]:
    if client.version < GROUPS_VERSION:
        return broker.slices.run(one_group(request, broker, client.version))
    return broker.slices.run(answer_groups(request, broker, client.version))


# --- one group, by name: versions below 8 ---------------------------------------------------------------------------


def one_group(request: OffsetFetchRequest, broker: Broker, version: int) -> Work[OffsetFetchResponse]:
    try:
        offsets = offsets_of(request.group_id, broker, is_stable=request.require_stable)
    except BrokerError as error:
        return refusal(request, error.code, version)
    wanted: Iterable[tuple[str, Iterable[int]]] = (
        list(offsets.by_topic.items())
        if request.topics is None
        else ((topic.name, topic.partition_indexes) for topic in request.topics)
    )
    answer, cost = OffsetFetchResponse(), Cost()
    for name, indexes in wanted:
        topic = OffsetFetchResponseTopic(name)
        for index in list(indexes):
            value, code = offsets.at(name, index)
            found = OffsetFetchResponsePartition(index, value.offset, value.leader_epoch, value.metadata, code)
            topic.partitions.append(found)
            if cost.add(1):
                yield
        answer.topics.append(topic)
    return answer


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


# --- many groups, from version 8 ------------------------------------------------------------------------------------


def answer_groups(request: OffsetFetchRequest, broker: Broker, version: int) -> Work[OffsetFetchResponse]:
    answer, cost = OffsetFetchResponse(), Cost()
    for group in request.groups:
        answered = yield from answer_group(group, broker, version, cost, is_stable=request.require_stable)
        answer.groups.append(answered)
    return answer


def answer_group(
    group: OffsetFetchRequestGroup, broker: Broker, version: int, cost: Cost, *, is_stable: bool
) -> Work[OffsetFetchResponseGroup]:
    try:
        consumers = broker.groups.shard(group.group_id).consumers.get(group.group_id)
        if consumers is not None and version >= MEMBER_VERSION:
            check_fetcher(consumers, group.member_epoch, group.member_id)
        streams = broker.groups.shard(group.group_id).streams.get(group.group_id)
        if streams is not None and version >= MEMBER_VERSION:
            check_streams_fetcher(streams, group.member_epoch, group.member_id)
        offsets = offsets_of(group.group_id, broker, is_stable=is_stable)
    except BrokerError as error:
        return OffsetFetchResponseGroup(group.group_id, error_code=error.code)
    if group.topics is None:
        topics = yield from all_topics(offsets, broker, version, cost)
        return OffsetFetchResponseGroup(group.group_id, topics)
    answer = OffsetFetchResponseGroup(group.group_id)
    unknown: list[OffsetFetchResponseTopics] = []
    for topic in group.topics:
        is_unknown = version >= TOPIC_ID_VERSION and broker.metadata.topics.by_id(topic.topic_id) is None
        found = yield from answer_topic(topic, offsets, broker, version, cost)
        (unknown if is_unknown else answer.topics).append(found)
    answer.topics += unknown  # behind the others, as in Apache Kafka
    return answer


def all_topics(offsets: Committed, broker: Broker, version: int, cost: Cost) -> Work[list[OffsetFetchResponseTopics]]:
    topics = []
    for name, indexes in list(offsets.by_topic.items()):
        known = broker.metadata.topics.get(name)
        if known is not None or version < TOPIC_ID_VERSION:
            topic_id = ZERO if known is None else known.topic_id
            partitions = yield from places(offsets, name, list(indexes), cost)
            topics.append(OffsetFetchResponseTopics(name, topic_id, partitions))
    return topics


def answer_topic(
    topic: OffsetFetchRequestTopics, offsets: Committed, broker: Broker, version: int, cost: Cost
) -> Work[OffsetFetchResponseTopics]:
    if version < TOPIC_ID_VERSION:
        partitions = yield from places(offsets, topic.name, topic.partition_indexes, cost)
        return OffsetFetchResponseTopics(topic.name, partitions=partitions)
    known = broker.metadata.topics.by_id(topic.topic_id)
    if known is not None:
        partitions = yield from places(offsets, known.name, topic.partition_indexes, cost)
    else:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        partitions = [OffsetFetchResponsePartitions(index, -1, error_code=code) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions)


def places(
    offsets: Committed, topic: str, indexes: Iterable[int], cost: Cost
) -> Work[list[OffsetFetchResponsePartitions]]:
    partitions = []
    for index in indexes:
        value, code = offsets.at(topic, index)
        partitions.append(OffsetFetchResponsePartitions(index, value.offset, value.leader_epoch, value.metadata, code))
        if cost.add(1):
            yield
    return partitions
