"""OffsetCommitValue."""

from kavka_broker.protocol.message import ZERO, Message


class OffsetCommitValue(Message):
    KIND = "coordinator-value"
    API_KEY = 1
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 4
    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id")
    SCHEMA = (
        ("offset", "offset", "int64", (0, 4)),
        ("leaderEpoch", "leader_epoch", "int32", (3, 4), None, None, None, -1, True),
        ("metadata", "metadata", "string", (0, 4)),
        ("commitTimestamp", "commit_timestamp", "int64", (0, 4)),
        ("expireTimestamp", "expire_timestamp", "int64", (1, 1), None, None, None, -1, True),
        ("topicId", "topic_id", "uuid", (4, 4), None, (4, 4), 0, b"", True),
    )

    def __init__(
        self,
        offset: int = 0, leader_epoch: int = -1, metadata: str = "", commit_timestamp: int = 0,
        expire_timestamp: int = -1, topic_id: bytes = ZERO,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
