"""ReadShareGroupStateSummaryRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition", "leader_epoch")
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
    )

    def __init__(self, partition: int = 0, leader_epoch: int = 0) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


class ReadStateSummaryData(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1)),
        ("Partitions", "partitions", "[]PartitionData", (0, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ReadShareGroupStateSummaryRequest(Message):
    KIND = "request"
    API_KEY = 87
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 1)),
        ("Topics", "topics", "[]ReadStateSummaryData", (0, 1)),
    )

    def __init__(self, group_id: str = "", topics: list[ReadStateSummaryData] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
