"""Gates of groups, and of the topics whose offsets they commit."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from kavka_broker.api.a09_offset_fetch import refusal as refused_offsets
from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation, ResourceType
from kavka_broker.core.consumer_group.settings import SUBSCRIBED_TOPICS_MAX
from kavka_broker.dispatch.access.gates import (
    CLUSTER,
    GROUP,
    ITEMS_PER_TURN,
    TOPIC,
    Access,
    Elements,
    OnGroup,
    Outcome,
    then,
)
from kavka_broker.dispatch.access.topics import name_of, named
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import consumer_group_describe_response as consumers
from kavka_broker.protocol.messages import offset_commit_response as commits
from kavka_broker.protocol.messages import offset_delete_response as deletions
from kavka_broker.protocol.messages.delete_groups_response import DeletableGroupResult
from kavka_broker.protocol.messages.describe_groups_response import DescribedGroup
from kavka_broker.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import Answer, Api

MANY_KEYS_VERSION = 4
GROUPS_VERSION = 8
NOBODY = -1
NAMES_PER_COST = 4  # that are put into a dict
NOT_ALL_TOPICS = "The group has topics that the client is not authorized to describe."
SHARE = 2
KINDS = {0: GROUP, 1: ResourceType.TRANSACTIONAL_ID}  # of keys of FindCoordinator


def lacks(operation: Operation, group_id: str, access: Access) -> BrokerError | None:
    """Return the refusal of a group; None where the client may do this with it."""
    return None if access.may(operation, GROUP, group_id) else access.refusal(operation, GROUP, group_id)


DELETE_GROUPS = Elements(
    "groups_names",
    "results",
    lambda group_id, _, __, access: lacks(Operation.DELETE, group_id, access),
    lambda group_id, refusal: DeletableGroupResult(group_id, refusal.code),
)
_DESCRIBE = Elements(
    "groups",
    "groups",
    lambda group_id, _, __, access: lacks(Operation.DESCRIBE, group_id, access),
    lambda group_id, refusal: DescribedGroup(refusal.code, None, group_id),
)

_DESCRIBE_CONSUMERS = Elements(
    "group_ids",
    "groups",
    lambda group_id, _, __, access: lacks(Operation.DESCRIBE, group_id, access),
    lambda group_id, refusal: consumers.DescribedGroup(refusal.code, None, group_id),
)


def describe_groups(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Describe the groups that the client may DESCRIBE, with its operations where it asks for them."""
    outcome = _DESCRIBE(request, api, broker, client, access)
    if not request.include_authorized_operations:
        return outcome
    return then(outcome, lambda answer: show_operations(answer, access))


async def describe_consumer_groups(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Describe the groups that the client may DESCRIBE with every topic in them: a part of a group is never shown."""
    outcome = _DESCRIBE_CONSUMERS(request, api, broker, client, access)
    answer: Any = outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]
    if request.include_authorized_operations:
        show_operations(answer, access)
    for index, group in enumerate(answer.groups):
        names = await broker.slices.whole(_topics_in(group))
        if not await may_describe_all(names, broker, access):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answer.groups[index] = consumers.DescribedGroup(code, NOT_ALL_TOPICS, group.group_id)
        await broker.slices.turn()
    return answer  # type: ignore[no-any-return]


def _topics_in(group: consumers.DescribedGroup) -> Work[list[str]]:
    names, cost = dict[str, None](), Cost()
    for member in group.members:
        assigned = (part.topic_partitions for part in (member.assignment, member.target_assignment))
        for some in (member.subscribed_topic_names, *([topic.topic_name for topic in topics] for topics in assigned)):
            names.update(dict.fromkeys(some))
            if cost.add(1 + len(some) // NAMES_PER_COST):
                yield
    return list(names)


async def may_describe_all(names: Sequence[str], broker: Broker, access: Access) -> bool:
    async for some in broker.slices.in_turns(names, ITEMS_PER_TURN):
        if not all(access.may(Operation.DESCRIBE, TOPIC, name) for name in some):
            return False
    return True


def hear_consumer(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Hear a member of a group that the client may READ. It may subscribe to topics that the client may DESCRIBE, and
    its expression matches no others.
    """
    if (lacking := lacks(Operation.READ, request.group_id, access)) is not None:
        raise lacking
    client.may_describe = partial(access.may, Operation.DESCRIBE, TOPIC)
    names = request.subscribed_topic_names or ()
    if len(names) > SUBSCRIBED_TOPICS_MAX:
        return api.handle(request, broker, client)  # which refuses that many
    if len(names) > ITEMS_PER_TURN:
        return _hear_many_names(request, api, broker, client, access)
    _require_description(names, access)
    return api.handle(request, broker, client)


async def _hear_many_names(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    async for some in broker.slices.in_turns(request.subscribed_topic_names, ITEMS_PER_TURN):
        _require_description(some, access)
    return await _handled(request, api, broker, client)  # type: ignore[no-any-return]


def _require_description(names: Sequence[str], access: Access) -> None:
    """Raises BrokerError where the client may not DESCRIBE one of these topics."""
    for name in names:
        if not access.may(Operation.DESCRIBE, TOPIC, name):
            raise access.refusal(Operation.DESCRIBE, TOPIC, name)


def show_operations(answer: Any, access: Access) -> None:
    for group in answer.groups:
        if not group.error_code:
            group.authorized_operations = access.operations(GROUP, group.group_id)


async def list_groups(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """List the groups that the client may DESCRIBE; all of them with DESCRIBE on the cluster."""
    outcome = api.handle(request, broker, client)
    answer: Any = outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]
    if access.may_cluster(Operation.DESCRIBE):
        return answer  # type: ignore[no-any-return]
    shown = []
    async for some in broker.slices.in_turns(answer.groups, ITEMS_PER_TURN):
        shown += [group for group in some if access.may(Operation.DESCRIBE, GROUP, group.group_id)]
    answer.groups = shown
    return answer  # type: ignore[no-any-return]


def find_coordinator(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Name the coordinators of what the client may DESCRIBE. Of an unknown type the handler says what is wrong."""
    kind = KINDS.get(request.key_type)
    if request.key_type == SHARE and not access.may_cluster(Operation.CLUSTER_ACTION):
        raise access.refusal(Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    if kind is None:
        return api.handle(request, broker, client)

    def refusal(key: str, broker: Broker, client: Client, access: Access) -> BrokerError | None:
        del broker, client
        allowed = access.may(Operation.DESCRIBE, kind, key)
        return None if allowed else access.refusal(Operation.DESCRIBE, kind, key)

    if client.version >= MANY_KEYS_VERSION:
        gate = Elements("coordinator_keys", "coordinators", refusal, _not_found)
        return gate(request, api, broker, client, access)
    lacking = refusal(request.key, broker, client, access)
    if lacking is None:
        return api.handle(request, broker, client)
    return FindCoordinatorResponse(0, lacking.code, lacking.message, NOBODY, "", NOBODY)


def _not_found(key: str, refusal: BrokerError) -> Coordinator:
    return Coordinator(key, NOBODY, "", NOBODY, refusal.code, refusal.message)


# --- committed offsets ----------------------------------------------------------------------------------------------


def commit_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Commit for a group that the client may READ, of the topics that it may READ too."""
    if (lacking := lacks(Operation.READ, request.group_id, access)) is not None:
        return commits.OffsetCommitResponse(topics=[_not_committed(topic, lacking) for topic in request.topics])
    return _COMMIT(request, api, broker, client, access)


def _may_read(topic: Any, broker: Broker, client: Client, access: Access) -> BrokerError | None:
    del client
    name = name_of(topic, broker)
    if name is None or access.may(Operation.READ, TOPIC, name):
        return None
    return access.refusal(Operation.READ, TOPIC, name)


def _not_committed(topic: Any, refusal: BrokerError) -> commits.OffsetCommitResponseTopic:
    partitions = [
        commits.OffsetCommitResponsePartition(partition.partition_index, refusal.code) for partition in topic.partitions
    ]
    return commits.OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)


_COMMIT = Elements("topics", "topics", _may_read, _not_committed)
_FORGET = Elements(
    "topics",
    "topics",
    named(Operation.READ),
    lambda topic, refusal: deletions.OffsetDeleteResponseTopic(
        topic.name,
        [deletions.OffsetDeleteResponsePartition(p.partition_index, refusal.code) for p in topic.partitions],
    ),
)


def delete_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Forget offsets of a group that the client may DELETE, of the topics that it may READ. Raises BrokerError."""
    if (lacking := lacks(Operation.DELETE, request.group_id, access)) is not None:
        raise lacking
    return _FORGET(request, api, broker, client, access)


async def fetch_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Tell the offsets of groups and topics that the client may DESCRIBE. Of all topics the others are left out, of
    named ones they are refused.
    """
    if client.version < GROUPS_VERSION:
        if (lacking := lacks(Operation.DESCRIBE, request.group_id, access)) is not None:
            return refused_offsets(request, lacking.code, client.version)
        answer = await _handled(request, api, broker, client)
        answer.topics = await _visible(answer.topics, broker, access, is_all=request.topics is None)
        return answer  # type: ignore[no-any-return]
    answer = await _handled(request, api, broker, client)
    for index, group in enumerate(answer.groups):
        if (lacking := lacks(Operation.DESCRIBE, group.group_id, access)) is not None:
            answer.groups[index] = OffsetFetchResponseGroup(group.group_id, error_code=lacking.code)
        else:
            is_all = request.groups[index].topics is None
            group.topics = await _visible(group.topics, broker, access, is_all=is_all)
    return answer  # type: ignore[no-any-return]


async def _handled(request: Any, api: Api, broker: Broker, client: Client) -> Any:
    outcome = api.handle(request, broker, client)
    return outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]


async def _visible(topics: Sequence[Any], broker: Broker, access: Access, *, is_all: bool) -> list[Any]:
    shown = []
    async for some in broker.slices.in_turns(topics, ITEMS_PER_TURN):
        for topic in some:
            topic_id = getattr(topic, "topic_id", None)
            known = broker.metadata.topics.by_id(topic_id) if topic_id and not topic.name else None
            name = topic.name or (known.name if known is not None else None)
            if name is None or access.may(Operation.DESCRIBE, TOPIC, name):
                shown.append(topic)
            elif not is_all:
                shown.append(_refused(topic))
    return shown


def _refused(topic: Any) -> Any:
    for partition in topic.partitions:
        partition.error_code, partition.metadata = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ""
        partition.committed_offset = partition.committed_leader_epoch = NOBODY
    return topic


READ_GROUP = OnGroup(Operation.READ)


def read_shares(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Serve members of a share group that the client may READ; the handler asks about topics, while it waits too."""
    if request.group_id is not None and (lacking := lacks(Operation.READ, request.group_id, access)) is not None:
        raise lacking
    return api.handle(request, broker, client)
