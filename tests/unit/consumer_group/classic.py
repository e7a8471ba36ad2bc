"""Members of the classic protocol in a world of consumer groups, and classic groups to be turned."""

from collections.abc import Iterable, Mapping
from struct import pack
from typing import Any

from kavka_broker.core.consumer_group import classic_members
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.classic_snapshot import snapshot_of
from kavka_broker.core.consumer_group.heartbeat import Change, heartbeat
from kavka_broker.core.consumer_group.records import replay
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.consumer_group.upgrade import upgraded
from kavka_broker.core.group.join import Join
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kavka_broker.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kavka_broker.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.unit.consumer_group.world import GROUP, World

NEWEST = 3


def subscription(topics: Iterable[str] = ("t",), owned: Iterable[int] = (), version: int = NEWEST) -> bytes:
    """The metadata of a consumer that owns these partitions of `t`."""
    message = ConsumerProtocolSubscription(list(topics))
    if version and (indexes := list(owned)):
        message.owned_partitions = [TopicPartition("t", indexes)]
    return pack(">h", version) + encode(message, version)


def assignment(*indexes: int, user_data: bytes | None = None) -> bytes:
    message = ConsumerProtocolAssignment([Assigned("t", list(indexes))] if indexes else [], user_data)
    return pack(">h", NEWEST) + encode(message, NEWEST)


def join_command(member_id: str = "", **fields: Any) -> Join:
    said: dict[str, Any] = {
        "token": member_id,
        "member_id": member_id,
        "instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": (("range", subscription()),),
        "new_member_id": "" if member_id else "made",
        "needs_known_id": False,
        "can_skip_assignment": True,
        **fields,
    }
    return Join(**said)


def join(world: World, member_id: str, owned: Iterable[int] = (), **fields: Any) -> Change:
    """A JoinGroup to the world's group. Raises BrokerError."""
    if owned:
        fields["protocols"] = (("range", subscription(owned=owned)),)
    group = world.existing()
    change = classic_members.join(group, join_command(member_id, **fields), world.settings, world.around(group))
    world.apply(change)
    return change


def held(group: ConsumerGroup) -> Mapping[str, list[int]]:
    """What each member has, as the group knows, of its only topic."""
    return {
        member.member_id: sorted(
            index for part in (member.assigned, member.revoking) for has in part.values() for index in has
        )
        for member in group.members.values()
    }


def classic_group(generation: int = 3, **assignments: bytes) -> ClassicGroup:
    """A stable group of consumers with these assignments."""
    group = ClassicGroup(
        GROUP,
        state=GroupState.STABLE,
        generation=generation,
        protocol_type="consumer",
        protocol_name="range",
    )
    for member_id, assigned in assignments.items():
        protocols = (("range", subscription()),)
        group.add(Member(member_id, None, "client", "/127.0.0.1", 10_000, 30_000, protocols, assigned))
    return group


def turn(world: World, group: ClassicGroup) -> list[KeyedRecord]:
    """Make the classic group the world's group; returns its records. Raises BrokerError."""
    records = upgraded(snapshot_of(group), world.topics)
    world.groups[GROUP] = ConsumerGroup(GROUP)
    for record in records:
        replay(world.groups, record.key, record.value)
    return records


def beat(world: World, member_id: str, epoch: int = 0, **fields: Any) -> Change:
    """A heartbeat of the new protocol. Raises BrokerError."""
    if not epoch:
        fields = {"rebalance_timeout_ms": 1_000, "topics": ("t",), "owned": {}, **fields}
    change = heartbeat(
        world.group, Heartbeat(GROUP, member_id, epoch, **fields), world.settings, world.around(world.group)
    )
    world.apply(change)
    return change
