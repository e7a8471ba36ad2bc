"""Gates of share groups (KIP-932), and of the topics whose offsets they have."""

from collections.abc import Sequence
from typing import Any

from kavka_broker.core.authorization.acl_types import Operation
from kavka_broker.dispatch.access.gates import ITEMS_PER_TURN, TOPIC, Access, Elements, Outcome, then
from kavka_broker.dispatch.access.groups import NOBODY, lacks, may_describe_all, show_operations
from kavka_broker.dispatch.access.topics import named
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import alter_share_group_offsets_response as alterations
from kavka_broker.protocol.messages import delete_share_group_offsets_response as deletions
from kavka_broker.protocol.messages import describe_share_group_offsets_response as offsets
from kavka_broker.protocol.messages import share_group_describe_response as shares
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import Answer, Api

NOT_ALL_TOPICS = "The group has described topic(s) that the client is not authorized to describe."

_DESCRIBE = Elements(
    "group_ids",
    "groups",
    lambda group_id, _, __, access: lacks(Operation.DESCRIBE, group_id, access),
    lambda group_id, refusal: shares.DescribedGroup(refusal.code, None, group_id),
)


async def describe(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Describe the groups that the client may DESCRIBE with every topic that is assigned in them."""
    outcome = _DESCRIBE(request, api, broker, client, access)
    answer: Any = outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]
    if request.include_authorized_operations:
        show_operations(answer, access)
    for index, group in enumerate(answer.groups):
        if not await may_describe_all(await broker.slices.whole(_assigned_in(group)), broker, access):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answer.groups[index] = shares.DescribedGroup(code, NOT_ALL_TOPICS, group.group_id)
        await broker.slices.turn()
    return answer  # type: ignore[no-any-return]


def _assigned_in(group: shares.DescribedGroup) -> Work[list[str]]:
    names, cost = dict[str, None](), Cost()
    for member in group.members:
        topics = member.assignment.topic_partitions
        names.update((topic.topic_name, None) for topic in topics)
        if cost.add(1 + len(topics)):
            yield
    return list(names)


_DESCRIBE_OFFSETS = Elements(
    "groups",
    "groups",
    lambda group, _, __, access: lacks(Operation.DESCRIBE, group.group_id, access),
    lambda group, refusal: offsets.DescribeShareGroupOffsetsResponseGroup(group.group_id, error_code=refusal.code),
)


async def describe_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Tell the offsets of groups and topics that the client may DESCRIBE. Of all topics the others are left out, of
    named ones they are refused.
    """
    outcome = _DESCRIBE_OFFSETS(request, api, broker, client, access)
    answer: Any = outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]
    asked = {group.group_id: (number, group.topics is None) for number, group in enumerate(request.groups)}
    answer.groups.sort(key=lambda group: asked[group.group_id])
    for group in answer.groups:
        _, is_all = asked[group.group_id]
        group.topics = await _visible(group.topics, broker, access, is_all=is_all)
    return answer  # type: ignore[no-any-return]


async def _visible(topics: Sequence[Any], broker: Broker, access: Access, *, is_all: bool) -> list[Any]:
    shown, refused = list[Any](), list[Any]()
    async for some in broker.slices.in_turns(topics, ITEMS_PER_TURN):
        for topic in some:
            if access.may(Operation.DESCRIBE, TOPIC, topic.topic_name):
                shown.append(topic)
            elif not is_all:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                partitions = [
                    offsets.DescribeShareGroupOffsetsResponsePartition(
                        part.partition_index, NOBODY, 0, NOBODY, code, "Topic authorization failed."
                    )
                    for part in topic.partitions
                ]
                refused.append(offsets.DescribeShareGroupOffsetsResponseTopic(topic.topic_name, partitions=partitions))
    return shown + refused


_ALTER = Elements(
    "topics",
    "responses",
    named(Operation.READ, "topic_name"),
    lambda topic, refusal: alterations.AlterShareGroupOffsetsResponseTopic(
        topic.topic_name,
        partitions=[
            alterations.AlterShareGroupOffsetsResponsePartition(part.partition_index, refusal.code, refusal.message)
            for part in topic.partitions
        ],
    ),
    asks_always=True,
)
_FORGET = Elements(
    "topics",
    "responses",
    named(Operation.READ, "topic_name"),
    lambda topic, refusal: deletions.DeleteShareGroupOffsetsResponseTopic(
        topic.topic_name, error_code=refusal.code, error_message=refusal.message
    ),
    asks_always=True,
)


def alter_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Alter offsets of a group that the client may READ, of the topics that it may READ too. Raises BrokerError."""
    _require(Operation.READ, request.group_id, access)
    return then(_ALTER(request, api, broker, client, access), _without_parts)


def delete_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Forget offsets of a group that the client may DELETE, of the topics that it may READ. Raises BrokerError."""
    _require(Operation.DELETE, request.group_id, access)
    return then(_FORGET(request, api, broker, client, access), _without_parts)


def _without_parts(answer: Any) -> None:
    """Leave the error of a whole request alone, as Apache Kafka does: no topic stands beside it."""
    if answer.error_code:
        answer.responses = []


def _require(operation: Operation, group_id: str, access: Access) -> None:
    """Raises BrokerError."""
    lacking: BrokerError | None = lacks(operation, group_id, access)
    if lacking is not None:
        raise lacking
