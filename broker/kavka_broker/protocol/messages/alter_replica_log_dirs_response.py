"""AlterReplicaLogDirsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterReplicaLogDirPartitionResult(Struct):
    __slots__ = ("partition_index", "error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 2)),
        ("ErrorCode", "error_code", "int16", (1, 2)),
    )

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class AlterReplicaLogDirTopicResult(Struct):
    __slots__ = ("topic_name", "partitions")
    SCHEMA = (
        ("TopicName", "topic_name", "string", (1, 2)),
        ("Partitions", "partitions", "[]AlterReplicaLogDirPartitionResult", (1, 2)),
    )

    def __init__(self, topic_name: str = "", partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterReplicaLogDirsResponse(Message):
    KIND = "response"
    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 2)),
        ("Results", "results", "[]AlterReplicaLogDirTopicResult", (1, 2)),
    )

    def __init__(self, throttle_time_ms: int = 0, results: list[AlterReplicaLogDirTopicResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
