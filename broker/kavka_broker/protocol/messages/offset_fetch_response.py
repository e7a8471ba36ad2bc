"""OffsetFetchResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class OffsetFetchResponsePartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 7)),
        ("CommittedOffset", "committed_offset", "int64", (1, 7)),
        ("CommittedLeaderEpoch", "committed_leader_epoch", "int32", (5, 7), None, None, None, -1, True),
        ("Metadata", "metadata", "string", (1, 7), (1, 7)),
        ("ErrorCode", "error_code", "int16", (1, 7)),
    )

    def __init__(
        self,
        partition_index: int = 0, committed_offset: int = 0, committed_leader_epoch: int = -1,
        metadata: str | None = "", error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (1, 7)),
        ("Partitions", "partitions", "[]OffsetFetchResponsePartition", (1, 7)),
    )

    def __init__(self, name: str = "", partitions: list[OffsetFetchResponsePartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetFetchResponsePartitions(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (8, 10)),
        ("CommittedOffset", "committed_offset", "int64", (8, 10)),
        ("CommittedLeaderEpoch", "committed_leader_epoch", "int32", (8, 10), None, None, None, -1, True),
        ("Metadata", "metadata", "string", (8, 10), (8, 10)),
        ("ErrorCode", "error_code", "int16", (8, 10)),
    )

    def __init__(
        self,
        partition_index: int = 0, committed_offset: int = 0, committed_leader_epoch: int = -1,
        metadata: str | None = "", error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Struct):
    __slots__ = ("name", "topic_id", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (8, 9), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (10, 10), None, None, None, b"", True),
        ("Partitions", "partitions", "[]OffsetFetchResponsePartitions", (8, 10)),
    )

    def __init__(
        self,
        name: str = "", topic_id: bytes = ZERO, partitions: list[OffsetFetchResponsePartitions] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetFetchResponseGroup(Struct):
    __slots__ = ("group_id", "topics", "error_code")
    SCHEMA = (
        ("GroupId", "group_id", "string", (8, 10)),
        ("Topics", "topics", "[]OffsetFetchResponseTopics", (8, 10)),
        ("ErrorCode", "error_code", "int16", (8, 10)),
    )

    def __init__(
        self,
        group_id: str = "", topics: list[OffsetFetchResponseTopics] = EMPTY, error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code


class OffsetFetchResponse(Message):
    KIND = "response"
    API_KEY = 9
    VERSIONS = (1, 10)
    FLEXIBLE_FROM = 6
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (3, 10), None, None, None, 0, True),
        ("Topics", "topics", "[]OffsetFetchResponseTopic", (1, 7)),
        ("ErrorCode", "error_code", "int16", (2, 7), None, None, None, 0, True),
        ("Groups", "groups", "[]OffsetFetchResponseGroup", (8, 10)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, topics: list[OffsetFetchResponseTopic] = EMPTY, error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
