"""AlterPartitionRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class BrokerState(Struct):
    __slots__ = ("broker_id", "broker_epoch")
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (3, 3)),
        ("BrokerEpoch", "broker_epoch", "int64", (3, 3), None, None, None, -1),
    )

    def __init__(self, broker_id: int = 0, broker_epoch: int = -1) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class PartitionData(Struct):
    __slots__ = (
        "partition_index", "leader_epoch", "new_isr", "new_isr_with_epochs", "leader_recovery_state",
        "partition_epoch",
    )
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (2, 3)),
        ("LeaderEpoch", "leader_epoch", "int32", (2, 3)),
        ("NewIsr", "new_isr", "[]int32", (2, 2)),
        ("NewIsrWithEpochs", "new_isr_with_epochs", "[]BrokerState", (3, 3)),
        ("LeaderRecoveryState", "leader_recovery_state", "int8", (2, 3)),
        ("PartitionEpoch", "partition_epoch", "int32", (2, 3)),
    )

    def __init__(
        self,
        partition_index: int = 0, leader_epoch: int = 0, new_isr: list[int] = EMPTY,
        new_isr_with_epochs: list[BrokerState] = EMPTY, leader_recovery_state: int = 0, partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr = [] if new_isr is EMPTY else new_isr
        self.new_isr_with_epochs = [] if new_isr_with_epochs is EMPTY else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class TopicData(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (2, 3), None, None, None, b"", True),
        ("Partitions", "partitions", "[]PartitionData", (2, 3)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionRequest(Message):
    KIND = "request"
    API_KEY = 56
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("broker_id", "broker_epoch", "topics")
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (2, 3)),
        ("BrokerEpoch", "broker_epoch", "int64", (2, 3), None, None, None, -1),
        ("Topics", "topics", "[]TopicData", (2, 3)),
    )

    def __init__(self, broker_id: int = 0, broker_epoch: int = -1, topics: list[TopicData] = EMPTY) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is EMPTY else topics
