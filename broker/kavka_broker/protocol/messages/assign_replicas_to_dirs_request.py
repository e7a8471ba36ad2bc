"""AssignReplicasToDirsRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionData(Struct):
    __slots__ = ("partition_index",)
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 0)),
    )

    def __init__(self, partition_index: int = 0) -> None:
        self.partition_index = partition_index


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


class AssignReplicasToDirsRequest(Message):
    KIND = "request"
    API_KEY = 73
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch", "directories")
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 0)),
        ("BrokerEpoch", "broker_epoch", "int64", (0, 0), None, None, None, -1),
        ("Directories", "directories", "[]DirectoryData", (0, 0)),
    )

    def __init__(
        self,
        broker_id: int = 0, broker_epoch: int = -1, directories: list[DirectoryData] = EMPTY,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.directories = [] if directories is EMPTY else directories
