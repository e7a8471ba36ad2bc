"""May this member speak for itself? The checks that every request of a member passes first."""

from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["member_of", "require_alive", "require_generation"]


def member_of(group: ClassicGroup, member_id: str, instance_id: str | None) -> Member:
    """The sender. Raises BrokerError; a static member whose place another has taken is fenced (KIP-345)."""
    if instance_id is not None:
        current_id = group.instances.get(instance_id)
        if current_id is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"instance {instance_id} is not in the group")
        if current_id != member_id:
            raise BrokerError(ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id} has a newer member")
    member = group.members.get(member_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
    assert instance_id is None or member.instance_id == instance_id, f"{member} is not the instance {instance_id}"
    return member


def require_alive(group: ClassicGroup) -> None:
    """Check that the group is not dead: its coordinator may be another broker by now. Raises BrokerError."""
    if group.state is GroupState.DEAD:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def require_generation(group: ClassicGroup, generation: int) -> None:
    """Check that the group is in this generation. Raises BrokerError."""
    if generation != group.generation:
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION, f"generation {generation}; the group is at {group.generation}")
