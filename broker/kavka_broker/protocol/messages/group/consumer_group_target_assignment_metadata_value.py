"""ConsumerGroupTargetAssignmentMetadataValue."""

from kavka_broker.protocol.message import Message


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 6
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("assignment_epoch", "assignment_timestamp")
    SCHEMA = (
        ("AssignmentEpoch", "assignment_epoch", "int32", (0, 0)),
        ("AssignmentTimestamp", "assignment_timestamp", "int64", (0, 0), None, (0, 0), 0, 0, True),
    )

    def __init__(self, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
