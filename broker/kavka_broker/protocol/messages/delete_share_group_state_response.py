"""DeleteShareGroupStateResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionResult(Struct):
    __slots__ = ("partition", "error_code", "error_message")
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0), None, None, None),
    )

    def __init__(self, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message


class DeleteStateResult(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partitions", "partitions", "[]PartitionResult", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionResult] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class DeleteShareGroupStateResponse(Message):
    KIND = "response"
    API_KEY = 86
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("results",)
    SCHEMA = (
        ("Results", "results", "[]DeleteStateResult", (0, 0)),
    )

    def __init__(self, results: list[DeleteStateResult] = EMPTY) -> None:
        self.results = [] if results is EMPTY else results
