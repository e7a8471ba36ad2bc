"""WriteShareGroupStateResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionResult(Struct):
    __slots__ = ("partition", "error_code", "error_message")
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None),
    )

    def __init__(self, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message


class WriteStateResult(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1)),
        ("Partitions", "partitions", "[]PartitionResult", (0, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionResult] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class WriteShareGroupStateResponse(Message):
    KIND = "response"
    API_KEY = 85
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("results",)
    SCHEMA = (
        ("Results", "results", "[]WriteStateResult", (0, 1)),
    )

    def __init__(self, results: list[WriteStateResult] = EMPTY) -> None:
        self.results = [] if results is EMPTY else results
