"""DescribeShareGroupOffsets (90): where the share partitions of groups begin, and how far behind they are (KIP-932).

- Of all partitions that the group has state for, where no topics are named.
- A topic that does not exist, and a partition without state, has the start offset -1, and is no error.
- The lag is the end of the partition less its start offset less what has been delivered beyond that for good
  (KIP-1226); -1 where one of them is not known.
- Of a partition that never had a record a group has no start offset: -1, and no error. The leader has written one down
  nonetheless (see `ShareLeader.load`), which Apache Kafka does with the first acknowledgement.
- Below share.version 1 each group is UNSUPPORTED_VERSION.
Versions: flexible from 0, the lag from 1.
"""

from collections.abc import Iterable, Mapping

from kavka_broker.coordinator.groups.share_groups import is_served
from kavka_broker.coordinator.share.share_state_client import Place, Summary
from kavka_broker.core.group.lag import Ends
from kavka_broker.core.metadata.image.topics import Topic, Topics
from kavka_broker.core.share.share_states import UNSET
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kavka_broker.protocol.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

NO_LAG = -1
NOT_DESCRIBED = Summary(ErrorCode.COORDINATOR_NOT_AVAILABLE, 0, 0, UNSET, UNSET)
NO_END = "The end of the partition is not known: its leader does not tell."

Asked = Mapping[str, Iterable[int]]
"""Partitions by the names of topics."""


@api(
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    versions=(0, 1),
    each=(Each("groups.topics.partitions", "groups.topics.partitions", per_turn=100, once=True),),
)
async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, broker: Broker, client: Client
) -> DescribeShareGroupOffsetsResponse:
    del client
    if not is_served(broker.metadata):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [DescribeShareGroupOffsetsResponseGroup(group.group_id, error_code=code) for group in request.groups]
        return DescribeShareGroupOffsetsResponse(groups=groups)
    return DescribeShareGroupOffsetsResponse(groups=[await describe(group, broker) for group in request.groups])


async def describe(
    group: DescribeShareGroupOffsetsRequestGroup, broker: Broker
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        asked = named(group) if group.topics is not None else await broker.slices.whole(initialized(group, broker))
    except BrokerError as error:
        return DescribeShareGroupOffsetsResponseGroup(group.group_id, [], error.code, error.message)
    places = await broker.slices.whole(places_of(asked, broker.metadata.topics))
    states = broker.groups.share_states
    summaries = {} if states is None or not places else await states.read_summary(group.group_id, places)
    known = [place for place, summary in summaries.items() if has_lag(summary) or is_at_zero(summary)]
    ends = await broker.leader_offsets.ends([(places[place], place[1]) for place in known]) if known else {}
    topics = await broker.slices.whole(answer_of(asked, summaries, ends, broker.metadata.topics))
    return DescribeShareGroupOffsetsResponseGroup(group.group_id, topics)


def named(group: DescribeShareGroupOffsetsRequestGroup) -> Asked:
    asked = dict[str, list[int]]()
    for topic in group.topics or ():
        asked.setdefault(topic.topic_name, []).extend(topic.partitions)
    return asked


def initialized(asked_of: DescribeShareGroupOffsetsRequestGroup, broker: Broker) -> Work[Asked]:
    """The partitions that a group has state for: none where it does not exist. Raises BrokerError."""
    group = broker.groups.shard(asked_of.group_id).shares.get(asked_of.group_id)
    states = None if group is None else group.states
    found, cost = dict[str, list[int]](), Cost()
    for topic_id, known in ({} if states is None else states.initialized).items():
        if (topic := broker.metadata.topics.by_id(topic_id)) is not None:
            found[topic.name] = sorted(known.partitions)
        if cost.add(1 + len(known.partitions)):
            yield
    return found


def places_of(asked: Asked, topics: Topics) -> Work[dict[Place, str]]:
    """The partitions of existing topics, with the names of those."""
    places, cost = dict[Place, str](), Cost()
    for name, indexes in asked.items():
        if (topic := topics.get(name)) is not None:
            for index in indexes:
                places[topic.topic_id, index] = name
                if cost.add(1):
                    yield
    return places


def has_lag(summary: Summary) -> bool:
    return not summary.error and UNSET not in (summary.start_offset, summary.delivery_complete_count)


def is_at_zero(summary: Summary) -> bool:
    """Whether a group begins at the first offset there is, and nothing is counted: it may have read nothing yet."""
    return not summary.error and (summary.start_offset, summary.delivery_complete_count) == (0, UNSET)


def answer_of(
    asked: Asked, summaries: Mapping[Place, Summary], ends: Mapping[tuple[str, int], Ends], topics: Topics
) -> Work[list[DescribeShareGroupOffsetsResponseTopic]]:
    """Topics that do not exist stand behind the others, as in Apache Kafka."""
    known, unknown, cost = list[DescribeShareGroupOffsetsResponseTopic](), [], Cost()
    for name, indexes in asked.items():
        topic = topics.get(name)
        answer = DescribeShareGroupOffsetsResponseTopic(name)
        for index in indexes:
            answer.partitions.append(partition_of(topic, index, summaries, ends))
            if cost.add(2):
                yield
        if topic is None:
            unknown.append(answer)
        else:
            answer.topic_id = topic.topic_id
            known.append(answer)
    return known + unknown


def partition_of(
    topic: Topic | None, index: int, summaries: Mapping[Place, Summary], ends: Mapping[tuple[str, int], Ends]
) -> DescribeShareGroupOffsetsResponsePartition:
    summary = NOT_DESCRIBED if topic is None else summaries.get((topic.topic_id, index), NOT_DESCRIBED)
    if topic is None or summary.error:
        return DescribeShareGroupOffsetsResponsePartition(index, UNSET, 0, NO_LAG)
    if not has_lag(summary) and not is_at_zero(summary):
        return DescribeShareGroupOffsetsResponsePartition(index, summary.start_offset, summary.leader_epoch, NO_LAG)
    end = ends.get((topic.name, index))
    if end is None:
        return DescribeShareGroupOffsetsResponsePartition(
            index, error_code=ErrorCode.LEADER_NOT_AVAILABLE, error_message=NO_END
        )
    if is_at_zero(summary):
        start_offset = summary.start_offset if end.high_watermark else UNSET
        return DescribeShareGroupOffsetsResponsePartition(index, start_offset, summary.leader_epoch, NO_LAG)
    lag = end.high_watermark - summary.start_offset - summary.delivery_complete_count
    return DescribeShareGroupOffsetsResponsePartition(index, summary.start_offset, summary.leader_epoch, lag)
