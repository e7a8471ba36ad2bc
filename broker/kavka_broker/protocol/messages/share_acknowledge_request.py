"""ShareAcknowledgeRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class AcknowledgementBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "acknowledge_types")
    SCHEMA = (
        ("FirstOffset", "first_offset", "int64", (1, 2)),
        ("LastOffset", "last_offset", "int64", (1, 2)),
        ("AcknowledgeTypes", "acknowledge_types", "[]int8", (1, 2)),
    )

    def __init__(self, first_offset: int = 0, last_offset: int = 0, acknowledge_types: list[int] = EMPTY) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is EMPTY else acknowledge_types


class AcknowledgePartition(Struct):
    __slots__ = ("partition_index", "acknowledgement_batches")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 2)),
        ("AcknowledgementBatches", "acknowledgement_batches", "[]AcknowledgementBatch", (1, 2)),
    )

    def __init__(
        self,
        partition_index: int = 0, acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY else acknowledgement_batches


class AcknowledgeTopic(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (1, 2)),
        ("Partitions", "partitions", "[]AcknowledgePartition", (1, 2)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[AcknowledgePartition] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ShareAcknowledgeRequest(Message):
    KIND = "request"
    API_KEY = 79
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")
    SCHEMA = (
        ("GroupId", "group_id", "string", (1, 2), (1, 2), None, None, None),
        ("MemberId", "member_id", "string", (1, 2), (1, 2)),
        ("ShareSessionEpoch", "share_session_epoch", "int32", (1, 2)),
        ("IsRenewAck", "is_renew_ack", "bool", (2, 2)),
        ("Topics", "topics", "[]AcknowledgeTopic", (1, 2)),
    )

    def __init__(
        self,
        group_id: str | None = None, member_id: str | None = "", share_session_epoch: int = 0,
        is_renew_ack: bool = False, topics: list[AcknowledgeTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics
