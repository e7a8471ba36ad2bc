"""Describes groups of the newer protocols, each once all that is said of it is committed."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Final, Protocol, TypeVar

from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.group_table import Group, GroupTable
from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.loop.slices import Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.request.broker import Broker, Client

__all__ = ["EVERY_OPERATION", "describe_all"]

READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 6, 8, 10, 11
EVERY_OPERATION: Final = 1 << READ | 1 << DELETE | 1 << DESCRIBE | 1 << DESCRIBE_CONFIGS | 1 << ALTER_CONFIGS
"""The allowed operations on a group, a bit field; without an authorizer all operations are."""


class Described(Protocol):
    """A group in an answer."""

    error_code: int
    authorized_operations: int


G = TypeVar("G", bound=Group)
D = TypeVar("D", bound=Described)


class DescribeRequest(Protocol):
    """A request that names groups of one protocol."""

    group_ids: list[str]
    include_authorized_operations: bool


async def describe_all(
    request: DescribeRequest,
    kind: Callable[..., D],
    groups_of: Callable[[Shard], GroupTable[G]],
    description_of: Callable[[G], Work[D]],
    broker: Broker,
    client: Client,
    *,
    is_served: bool,
) -> list[D]:
    """Describe the groups that a request names, each of which is among `groups_of` its shard; UNSUPPORTED_VERSION for
    each where their protocol is not served. `kind` makes a described group of an error, a message and an id. Others do
    not wait for what is not committed yet; this request does, until a commit has failed.
    """
    if not is_served:
        return [kind(ErrorCode.UNSUPPORTED_VERSION, None, group_id) for group_id in request.group_ids]
    groups, waiting = list[D](), list[tuple[int, Waiting]]()
    for group_id in request.group_ids:
        described, committed = await _describe(kind, group_id, groups_of, description_of, broker)
        if committed is not None:
            waiting.append((len(groups), committed))
        groups.append(described)
    with nullcontext() if client.making is None else client.making.resting():
        for place, committed in waiting:
            waits = committed.done() or not client.commit_error
            error_code = await committed if waits else client.commit_error
            if error_code:
                client.commit_error = error_code
                groups[place] = kind(error_code, None, request.group_ids[place])
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = EVERY_OPERATION
    return groups


async def _describe(
    kind: Callable[..., D],
    group_id: str,
    groups_of: Callable[[Shard], GroupTable[G]],
    description_of: Callable[[G], Work[D]],
    broker: Broker,
) -> tuple[D, Waiting | None]:
    """The group, and what tells whether all of its state is committed; None where that is."""
    if not group_id:
        return kind(ErrorCode.INVALID_GROUP_ID), None
    try:
        shard = broker.groups.shard(group_id)
        group, committed = groups_of(shard).existing(group_id), shard.log.when_settled()
    except BrokerError as error:
        return kind(error.code, error.message or None, group_id), None
    return await broker.slices.whole(description_of(group)), committed
