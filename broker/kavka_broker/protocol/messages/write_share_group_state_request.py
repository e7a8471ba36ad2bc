"""WriteShareGroupStateRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class StateBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    SCHEMA = (
        ("FirstOffset", "first_offset", "int64", (0, 1)),
        ("LastOffset", "last_offset", "int64", (0, 1)),
        ("DeliveryState", "delivery_state", "int8", (0, 1)),
        ("DeliveryCount", "delivery_count", "int16", (0, 1)),
    )

    def __init__(
        self,
        first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


class PartitionData(Struct):
    __slots__ = (
        "partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches",
    )
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 1)),
        ("StateEpoch", "state_epoch", "int32", (0, 1)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1)),
        ("StartOffset", "start_offset", "int64", (0, 1)),
        ("DeliveryCompleteCount", "delivery_complete_count", "int32", (1, 1), None, None, None, -1, True),
        ("StateBatches", "state_batches", "[]StateBatch", (0, 1)),
    )

    def __init__(
        self,
        partition: int = 0, state_epoch: int = 0, leader_epoch: int = 0, start_offset: int = 0,
        delivery_complete_count: int = -1, state_batches: list[StateBatch] = EMPTY,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is EMPTY else state_batches


class WriteStateData(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1)),
        ("Partitions", "partitions", "[]PartitionData", (0, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class WriteShareGroupStateRequest(Message):
    KIND = "request"
    API_KEY = 85
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("group_id", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 1)),
        ("Topics", "topics", "[]WriteStateData", (0, 1)),
    )

    def __init__(self, group_id: str = "", topics: list[WriteStateData] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
