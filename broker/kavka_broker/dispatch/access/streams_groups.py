"""Gates of streams groups (KIP-1071), and of the topics of their topologies."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from kavka_broker.core.authorization.acl_types import Operation
from kavka_broker.dispatch.access.gates import TOPIC, Access, Elements, Outcome
from kavka_broker.dispatch.access.groups import lacks, may_describe_all, show_operations
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import streams_group_describe_response as streams
from kavka_broker.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import Answer, Api

NOT_ALL_TOPICS = "The described group uses topics that the client is not authorized to describe."

_DESCRIBE = Elements(
    "group_ids",
    "groups",
    lambda group_id, _, __, access: lacks(Operation.DESCRIBE, group_id, access),
    lambda group_id, refusal: streams.DescribedGroup(refusal.code, None, group_id),
)


def hear(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Hear a member of a group that the client may READ. It may DESCRIBE all topics of its topology, and its internal
    topics are created where it may CREATE them. Raises BrokerError.
    """
    if (lacking := lacks(Operation.READ, request.group_id, access)) is not None:
        raise lacking
    if not access.may_cluster(Operation.CREATE):
        client.may_create = partial(access.may, Operation.CREATE, TOPIC)
    if request.topology is None:
        return api.handle(request, broker, client)
    return _hear_topology(request, api, broker, client, access)


async def _hear_topology(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    names = await broker.slices.whole(_topics_in(request.topology.subtopologies))
    if not await may_describe_all(names, broker, access):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    outcome = api.handle(request, broker, client)
    return outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]


async def describe(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Describe the groups that the client may DESCRIBE with every topic of their topologies."""
    outcome = _DESCRIBE(request, api, broker, client, access)
    answer: Any = outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]
    if request.include_authorized_operations:
        show_operations(answer, access)
    for index, group in enumerate(answer.groups):
        parts = group.topology.subtopologies if group.topology is not None else ()
        if not await may_describe_all(await broker.slices.whole(_topics_in(parts)), broker, access):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answer.groups[index] = streams.DescribedGroup(code, NOT_ALL_TOPICS, group.group_id)
        await broker.slices.turn()
    return answer  # type: ignore[no-any-return]


def _topics_in(parts: Any) -> Work[list[str]]:
    """The topics that the subtopologies of a request, or of an answer, name."""
    names, cost = dict[str, None](), Cost()
    for part in parts:
        for name in _names_of(part):
            names[name] = None
            if cost.add(1):
                yield
    return list(names)


def _names_of(part: Any) -> Iterator[str]:
    internal = chain(part.repartition_source_topics, part.state_changelog_topics)
    return chain(part.source_topics, part.repartition_sink_topics, (topic.name for topic in internal))
