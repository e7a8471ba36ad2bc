"""What a heartbeat may say: the checks before any state is looked at (K1), and those of a member's epoch (K2).

The words are close to Apache Kafka's, because people search for them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kavka_broker.core.consumer_group.settings import SUBSCRIBED_TOPICS_MAX
from kavka_broker.core.consumer_group.state import (
    LEFT_EPOCH,
    LEFT_FOR_A_WHILE_EPOCH,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = [
    "Heartbeat",
    "check_epoch",
    "check_heartbeat",
    "member_of",
    "require_instance",
]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat as its member sent it. None stands for what it does not say: that stays as it is."""

    group_id: str
    member_id: str
    epoch: int
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1  # -1: not said
    topics: Collection[str] | None = None
    regex: str | None = None
    server_assignor: str | None = None
    classic: ClassicSide | None = None  # of a JoinGroup, which is a heartbeat that joins and says what it owns
    owned: Mapping[bytes, Collection[int]] | None = None

    @property
    def joins(self) -> bool:
        return self.epoch == 0

    @property
    def leaves(self) -> bool:
        return self.epoch < 0

    @property
    def owned_count(self) -> int:
        """How many partitions it names as owned, each as often as it does."""
        return 0 if self.owned is None else sum(map(len, self.owned.values()))

    @property
    def is_full(self) -> bool:
        """Whether the member says everything, as it does when it joins and after an error: it wants everything back."""
        return self.joins or (
            self.rebalance_timeout_ms != -1
            and (self.topics is not None or self.regex is not None)
            and self.owned is not None
        )


def check_heartbeat(heartbeat: Heartbeat, assignors: Collection[str], *, needs_member_id: bool) -> None:
    """Check what needs no group. Raises BrokerError; `needs_member_id`: from version 1 on the client makes the id."""
    if needs_member_id or heartbeat.epoch > 0 or heartbeat.epoch == LEFT_EPOCH:
        _require_text(heartbeat.member_id, "MemberId")
    _require_text(heartbeat.group_id, "GroupId")
    _require_text(heartbeat.instance_id, "InstanceId")
    _require_text(heartbeat.rack_id, "RackId")
    if heartbeat.joins:
        _check_join(heartbeat)
    elif heartbeat.epoch == LEFT_FOR_A_WHILE_EPOCH and heartbeat.instance_id is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif heartbeat.epoch < LEFT_FOR_A_WHILE_EPOCH:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if heartbeat.server_assignor is not None and heartbeat.server_assignor not in assignors:
        supported = f"Supported assignors: {', '.join(assignors)}."
        problem = f"ServerAssignor {heartbeat.server_assignor} is not supported. {supported}"
        raise BrokerError(ErrorCode.UNSUPPORTED_ASSIGNOR, problem)
    if heartbeat.topics is not None and len(heartbeat.topics) > SUBSCRIBED_TOPICS_MAX:
        problem = (
            f"SubscribedTopicNames has {len(heartbeat.topics)} names; at most {SUBSCRIBED_TOPICS_MAX} are allowed."
        )
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)


def _check_join(heartbeat: Heartbeat) -> None:
    """Raises BrokerError."""
    if heartbeat.rebalance_timeout_ms == -1:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
    if heartbeat.owned is None or heartbeat.owned:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
    if heartbeat.topics is None and heartbeat.regex is None:
        problem = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)


def _require_text(text: str | None, name: str) -> None:
    """Raises BrokerError."""
    if text is not None and not text.strip():
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def check_epoch(member: ConsumerMember, epoch: int, owned: Mapping[bytes, Collection[int]] | None) -> None:
    """Check the epoch that a member says it is in. Raises BrokerError.

    One behind is right where the answer with the new epoch was lost: the member then owns no more than it is assigned.
    """
    if epoch > member.epoch:
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, _fenced("greater", epoch, member.epoch))
    if epoch < member.epoch and (epoch != member.previous_epoch or not _has_all(member, owned)):
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, _fenced("smaller", epoch, member.epoch))
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        problem = "The member is in a state that a later release wrote; it must abandon all its partitions and rejoin."
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, problem)


def _fenced(comparison: str, epoch: int, known: int) -> str:
    return (
        f"The consumer group member has a {comparison} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin."
    )


def _has_all(member: ConsumerMember, owned: Mapping[bytes, Collection[int]] | None) -> bool:
    if owned is None:
        return False
    return all(index in member.assigned.get(topic_id, ()) for topic_id, indexes in owned.items() for index in indexes)


def member_of(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def require_instance(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The static member of an instance, which has to be this one. Raises BrokerError."""
    member = group.static_member(instance_id)
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        problem = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        raise BrokerError(ErrorCode.FENCED_INSTANCE_ID, problem)
    return member
