"""ConsumerGroupCurrentMemberAssignmentValue."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions", "assignment_epochs")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
        ("AssignmentEpochs", "assignment_epochs", "[]int32", (0, 0), (0, 0), (0, 0), 0),
    )

    def __init__(
        self,
        topic_id: bytes = ZERO, partitions: list[int] = EMPTY, assignment_epochs: list[int] | None = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    KIND = "coordinator-value"
    API_KEY = 8
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation",
    )
    SCHEMA = (
        ("MemberEpoch", "member_epoch", "int32", (0, 0)),
        ("PreviousMemberEpoch", "previous_member_epoch", "int32", (0, 0)),
        ("State", "state", "int8", (0, 0)),
        ("AssignedPartitions", "assigned_partitions", "[]TopicPartitions", (0, 0)),
        ("PartitionsPendingRevocation", "partitions_pending_revocation", "[]TopicPartitions", (0, 0)),
    )

    def __init__(
        self,
        member_epoch: int = 0, previous_member_epoch: int = 0, state: int = 0,
        assigned_partitions: list[TopicPartitions] = EMPTY,
        partitions_pending_revocation: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is EMPTY else partitions_pending_revocation
