"""OffsetCommitRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class OffsetCommitRequestPartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (2, 10)),
        ("CommittedOffset", "committed_offset", "int64", (2, 10)),
        ("CommittedLeaderEpoch", "committed_leader_epoch", "int32", (6, 10), None, None, None, -1, True),
        ("CommittedMetadata", "committed_metadata", "string", (2, 10), (2, 10)),
    )

    def __init__(
        self,
        partition_index: int = 0, committed_offset: int = 0, committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (2, 9), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (10, 10), None, None, None, b"", True),
        ("Partitions", "partitions", "[]OffsetCommitRequestPartition", (2, 10)),
    )

    def __init__(
        self,
        name: str = "", topic_id: bytes = ZERO, partitions: list[OffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetCommitRequest(Message):
    KIND = "request"
    API_KEY = 8
    VERSIONS = (2, 10)
    FLEXIBLE_FROM = 8
    __slots__ = (
        "group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms",
        "topics",
    )
    SCHEMA = (
        ("GroupId", "group_id", "string", (2, 10)),
        ("GenerationIdOrMemberEpoch", "generation_id_or_member_epoch", "int32", (2, 10), None, None, None, -1, True),
        ("MemberId", "member_id", "string", (2, 10), None, None, None, "", True),
        ("GroupInstanceId", "group_instance_id", "string", (7, 10), (7, 10), None, None, None),
        ("RetentionTimeMs", "retention_time_ms", "int64", (2, 4), None, None, None, -1, True),
        ("Topics", "topics", "[]OffsetCommitRequestTopic", (2, 10)),
    )

    def __init__(
        self,
        group_id: str = "", generation_id_or_member_epoch: int = -1, member_id: str = "",
        group_instance_id: str | None = None, retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is EMPTY else topics
