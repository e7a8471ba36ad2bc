"""InitializeShareGroupStateRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition", "state_epoch", "start_offset")
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 0)),
        ("StateEpoch", "state_epoch", "int32", (0, 0)),
        ("StartOffset", "start_offset", "int64", (0, 0)),
    )

    def __init__(self, partition: int = 0, state_epoch: int = 0, start_offset: int = 0) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset


class InitializeStateData(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("Partitions", "partitions", "[]PartitionData", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class InitializeShareGroupStateRequest(Message):
    KIND = "request"
    API_KEY = 83
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("Topics", "topics", "[]InitializeStateData", (0, 0)),
    )

    def __init__(self, group_id: str = "", topics: list[InitializeStateData] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
