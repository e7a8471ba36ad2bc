"""ShareGroupCurrentMemberAssignmentValue."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ShareGroupCurrentMemberAssignmentValue(Message):
    KIND = "coordinator-value"
    API_KEY = 14
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")
    SCHEMA = (
        ("MemberEpoch", "member_epoch", "int32", (0, 0)),
        ("PreviousMemberEpoch", "previous_member_epoch", "int32", (0, 0)),
        ("State", "state", "int8", (0, 0)),
        ("AssignedPartitions", "assigned_partitions", "[]TopicPartitions", (0, 0)),
    )

    def __init__(
        self,
        member_epoch: int = 0, previous_member_epoch: int = 0, state: int = 0,
        assigned_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
