"""Describes groups of the newer protocols, each once all that is said of it is committed."""

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.group_table import Group, GroupTable
from kavka_broker.loop.slices import Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.request.broker import Broker

__all__ = ["EVERY_OPERATION", "allow_every_operation", "describe", "refuse"]

READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 6, 8, 10, 11
EVERY_OPERATION: Final = 1 << READ | 1 << DELETE | 1 << DESCRIBE | 1 << DESCRIBE_CONFIGS | 1 << ALTER_CONFIGS
"""The allowed operations on a group, a bit field; without an authorizer all operations are."""


class Described(Protocol):
    """A group in an answer."""

    error_code: int
    authorized_operations: int


G = TypeVar("G", bound=Group)
D = TypeVar("D", bound=Described)


def refuse(kind: Callable[..., D], group_ids: Iterable[str], code: ErrorCode) -> list[D]:
    """Answer each group with this error. `kind` makes a described group of an error, a message and an id."""
    return [kind(code, None, group_id) for group_id in group_ids]


async def describe(
    kind: Callable[..., D],
    group_id: str,
    groups_of: Callable[[Shard], GroupTable[G]],
    description_of: Callable[[G], Work[D]],
    broker: Broker,
) -> D:
    """Describe a group that is among `groups_of` its shard."""
    if not group_id:
        return kind(ErrorCode.INVALID_GROUP_ID)
    try:
        shard = broker.groups.shard(group_id)
        group, committed = groups_of(shard).existing(group_id), shard.log.when_settled()
    except BrokerError as error:
        return kind(error.code, error.message or None, group_id)
    described = await broker.slices.whole(description_of(group))
    error_code = ErrorCode.NONE if committed is None else await committed
    return described if error_code is ErrorCode.NONE else kind(error_code, None, group_id)


def allow_every_operation(groups: Iterable[Described]) -> None:
    """Say that the client may do anything with these groups, as it may without an authorizer."""
    for group in groups:
        if not group.error_code:
            group.authorized_operations = EVERY_OPERATION
