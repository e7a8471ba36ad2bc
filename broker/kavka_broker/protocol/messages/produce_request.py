"""ProduceRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Records, Struct


class PartitionProduceData(Struct):
    __slots__ = ("index", "records")
    SCHEMA = (
        ("Index", "index", "int32", (3, 13)),
        ("Records", "records", "records", (3, 13), (3, 13)),
    )

    def __init__(self, index: int = 0, records: Records = None) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Struct):
    __slots__ = ("name", "topic_id", "partition_data")
    SCHEMA = (
        ("Name", "name", "string", (3, 12), None, None, None, "", True),
        ("TopicId", "topic_id", "uuid", (13, 13), None, None, None, b"", True),
        ("PartitionData", "partition_data", "[]PartitionProduceData", (3, 13)),
    )

    def __init__(
        self,
        name: str = "", topic_id: bytes = ZERO, partition_data: list[PartitionProduceData] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is EMPTY else partition_data


class ProduceRequest(Message):
    KIND = "request"
    API_KEY = 0
    VERSIONS = (3, 13)
    FLEXIBLE_FROM = 9
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (3, 13), (3, 13), None, None, None),
        ("Acks", "acks", "int16", (3, 13)),
        ("TimeoutMs", "timeout_ms", "int32", (3, 13)),
        ("TopicData", "topic_data", "[]TopicProduceData", (3, 13)),
    )

    def __init__(
        self,
        transactional_id: str | None = None, acks: int = 0, timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is EMPTY else topic_data
