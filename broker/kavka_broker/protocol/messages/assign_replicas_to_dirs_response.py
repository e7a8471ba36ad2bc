"""AssignReplicasToDirsResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition_index", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TopicData(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partitions", "partitions", "[]PartitionData", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class DirectoryData(Struct):
    __slots__ = ("id", "topics")
    SCHEMA = (
        ("Id", "id", "uuid", (0, 0)),
        ("Topics", "topics", "[]TopicData", (0, 0)),
    )

    def __init__(self, id: bytes = ZERO, topics: list[TopicData] = EMPTY) -> None:
        self.id = id
        self.topics = [] if topics is EMPTY else topics


class AssignReplicasToDirsResponse(Message):
    KIND = "response"
    API_KEY = 73
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "directories")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("Directories", "directories", "[]DirectoryData", (0, 0)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, directories: list[DirectoryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories = [] if directories is EMPTY else directories
