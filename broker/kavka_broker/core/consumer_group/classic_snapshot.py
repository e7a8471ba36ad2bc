"""A classic group at one moment, which a thread may read."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from kavka_broker.core.group.state import ClassicGroup, Member, Protocols

__all__ = ["ClassicSnapshot", "MemberSnapshot", "is_large", "snapshot_of"]

AT_ONCE_MEMBERS_MAX: Final = 20
AT_ONCE_BYTES_MAX: Final = 4_096
"""Of a group that is turned on the loop: to read that takes two milliseconds."""


class MemberSnapshot(NamedTuple):
    """The part of a member that its consumer group follows from."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes

    def metadata(self, protocol: str) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


@dataclass(frozen=True, slots=True)
class ClassicSnapshot:
    """A classic group at one moment: two are equal where nothing has changed that its consumer group follows from."""

    group_id: str
    generation: int
    protocol_name: str
    members: tuple[MemberSnapshot, ...]


def snapshot_of(group: ClassicGroup) -> ClassicSnapshot:
    protocol = group.protocol_name or (group.select_protocol() if group.members else "")
    return ClassicSnapshot(group.group_id, group.generation, protocol, tuple(map(_member, group.members.values())))


def _member(member: Member) -> MemberSnapshot:
    return MemberSnapshot(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        member.protocols,
        member.assignment,
    )


def is_large(group: ClassicGroup) -> bool:
    """Whether a thread has to read the group."""
    if len(group.members) > AT_ONCE_MEMBERS_MAX:
        return True
    size_bytes = sum(
        len(member.assignment) + sum(len(metadata) for _, metadata in member.protocols)
        for member in group.members.values()
    )
    return size_bytes > AT_ONCE_BYTES_MAX
