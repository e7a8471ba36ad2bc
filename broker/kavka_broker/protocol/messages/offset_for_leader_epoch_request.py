"""OffsetForLeaderEpochRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class OffsetForLeaderPartition(Struct):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")
    SCHEMA = (
        ("Partition", "partition", "int32", (2, 4)),
        ("CurrentLeaderEpoch", "current_leader_epoch", "int32", (2, 4), None, None, None, -1, True),
        ("LeaderEpoch", "leader_epoch", "int32", (2, 4)),
    )

    def __init__(self, partition: int = 0, current_leader_epoch: int = -1, leader_epoch: int = 0) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Struct):
    __slots__ = ("topic", "partitions")
    SCHEMA = (
        ("Topic", "topic", "string", (2, 4)),
        ("Partitions", "partitions", "[]OffsetForLeaderPartition", (2, 4)),
    )

    def __init__(self, topic: str = "", partitions: list[OffsetForLeaderPartition] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochRequest(Message):
    KIND = "request"
    API_KEY = 23
    VERSIONS = (2, 4)
    FLEXIBLE_FROM = 4
    __slots__ = ("replica_id", "topics")
    SCHEMA = (
        ("ReplicaId", "replica_id", "int32", (3, 4), None, None, None, -2, True),
        ("Topics", "topics", "[]OffsetForLeaderTopic", (2, 4)),
    )

    def __init__(self, replica_id: int = -2, topics: list[OffsetForLeaderTopic] = EMPTY) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is EMPTY else topics
