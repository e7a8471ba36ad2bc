"""ShareFetchRequest."""

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


class FetchPartition(Struct):
    __slots__ = ("partition_index", "partition_max_bytes", "acknowledgement_batches")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 2)),
        ("PartitionMaxBytes", "partition_max_bytes", "int32", (0, 0)),
        ("AcknowledgementBatches", "acknowledgement_batches", "[]AcknowledgementBatch", (1, 2)),
    )

    def __init__(
        self,
        partition_index: int = 0, partition_max_bytes: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.partition_max_bytes = partition_max_bytes
        self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY else acknowledgement_batches


class FetchTopic(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (1, 2)),
        ("Partitions", "partitions", "[]FetchPartition", (1, 2)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[FetchPartition] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ForgottenTopic(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (1, 2)),
        ("Partitions", "partitions", "[]int32", (1, 2)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ShareFetchRequest(Message):
    KIND = "request"
    API_KEY = 78
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 1
    __slots__ = (
        "group_id", "member_id", "share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes", "max_records",
        "batch_size", "share_acquire_mode", "is_renew_ack", "topics", "forgotten_topics_data",
    )
    SCHEMA = (
        ("GroupId", "group_id", "string", (1, 2), (1, 2), None, None, None),
        ("MemberId", "member_id", "string", (1, 2), (1, 2)),
        ("ShareSessionEpoch", "share_session_epoch", "int32", (1, 2)),
        ("MaxWaitMs", "max_wait_ms", "int32", (1, 2)),
        ("MinBytes", "min_bytes", "int32", (1, 2)),
        ("MaxBytes", "max_bytes", "int32", (1, 2), None, None, None, 2147483647),
        ("MaxRecords", "max_records", "int32", (1, 2)),
        ("BatchSize", "batch_size", "int32", (1, 2)),
        ("ShareAcquireMode", "share_acquire_mode", "int8", (2, 2), None, None, None, 0, True),
        ("IsRenewAck", "is_renew_ack", "bool", (2, 2)),
        ("Topics", "topics", "[]FetchTopic", (1, 2)),
        ("ForgottenTopicsData", "forgotten_topics_data", "[]ForgottenTopic", (1, 2)),
    )

    def __init__(
        self,
        group_id: str | None = None, member_id: str | None = "", share_session_epoch: int = 0, max_wait_ms: int = 0,
        min_bytes: int = 0, max_bytes: int = 2147483647, max_records: int = 0, batch_size: int = 0,
        share_acquire_mode: int = 0, is_renew_ack: bool = False, topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
