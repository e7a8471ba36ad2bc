"""A classic group at one moment, which a thread may read."""

from dataclasses import dataclass, replace
from typing import Final

from kavka_broker.core.group.state import ClassicGroup, Member

__all__ = ["ClassicSnapshot", "snapshot_of"]

AT_ONCE_MEMBERS_MAX: Final = 20
AT_ONCE_BYTES_MAX: Final = 4_096
"""Of a group that is turned on the loop: to read that takes two milliseconds."""


@dataclass(frozen=True, slots=True)
class ClassicSnapshot:
    """A classic group at one moment: two are equal where nothing has changed that its consumer group follows from."""

    group_id: str
    generation: int
    protocol_name: str
    members: tuple[Member, ...]

    @property
    def is_large(self) -> bool:
        """Whether a thread has to read it."""
        size_bytes = sum(
            len(member.assignment) + sum(len(metadata) for _, metadata in member.protocols) for member in self.members
        )
        return len(self.members) > AT_ONCE_MEMBERS_MAX or size_bytes > AT_ONCE_BYTES_MAX


def snapshot_of(group: ClassicGroup) -> ClassicSnapshot:
    members = tuple(replace(member, join=None, sync=None, is_new=False) for member in group.members.values())
    protocol = group.protocol_name or (group.select_protocol() if group.members else "")
    return ClassicSnapshot(group.group_id, group.generation, protocol, members)
