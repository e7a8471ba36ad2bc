"""What a heartbeat may say: the checks before any state is looked at, and those of a member's epoch.

The words are close to Apache Kafka's, because people search for them.
"""

from collections.abc import Collection
from dataclasses import dataclass

from kavka_broker.core.consumer_group.settings import SUBSCRIBED_TOPICS_MAX
from kavka_broker.core.share_group.settings import MEMBER_ID_LENGTH_MAX
from kavka_broker.core.share_group.state import LEFT_EPOCH, ShareGroup, ShareMember
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["ShareHeartbeat", "check_epoch", "check_heartbeat", "member_of"]


@dataclass(frozen=True, slots=True)
class ShareHeartbeat:
    """A heartbeat as its member sent it. None stands for what it does not say: that stays as it is."""

    group_id: str
    member_id: str
    epoch: int
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    topics: Collection[str] | None = None

    @property
    def joins(self) -> bool:
        return self.epoch == 0

    @property
    def leaves(self) -> bool:
        return self.epoch == LEFT_EPOCH

    @property
    def is_full(self) -> bool:
        """Whether the member says everything, as it does when it joins and after an error: it wants everything back."""
        return self.joins or self.topics is not None


def check_heartbeat(beat: ShareHeartbeat) -> None:
    """Check what needs no group. Raises BrokerError."""
    if not 0 < len(beat.member_id) <= MEMBER_ID_LENGTH_MAX:
        raise BrokerError(ErrorCode.INVALID_REQUEST)  # without words, as in Apache Kafka
    _require_text(beat.member_id, "MemberId")
    _require_text(beat.group_id, "GroupId")
    _require_text(beat.rack_id, "RackId")
    if beat.joins and not beat.topics:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if beat.epoch < LEFT_EPOCH:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if beat.topics is not None and len(beat.topics) > SUBSCRIBED_TOPICS_MAX:
        problem = f"SubscribedTopicNames has {len(beat.topics)} names; at most {SUBSCRIBED_TOPICS_MAX} are allowed."
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)


def _require_text(text: str | None, name: str) -> None:
    """Raises BrokerError."""
    if text is not None and not text.strip():
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def check_epoch(member: ShareMember, epoch: int) -> None:
    """Check the epoch that a member says it is in. Raises BrokerError.

    One behind is right where the answer with the new epoch was lost.
    """
    if epoch > member.epoch:
        problem = (
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group coordinator "
            f"({member.epoch}). The member must abandon all its partitions and rejoin."
        )
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, problem)
    if epoch < member.epoch and epoch != member.previous_epoch:
        problem = (
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator "
            f"({member.epoch}), and it does not match the previous member epoch ({member.previous_epoch}). The member "
            "must abandon all its partitions and rejoin."
        )
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, problem)


def member_of(group: ShareGroup, member_id: str) -> ShareMember:
    """Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member
