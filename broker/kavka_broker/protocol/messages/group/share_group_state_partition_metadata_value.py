"""ShareGroupStatePartitionMetadataValue."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TopicPartitionsInfo(Struct):
    __slots__ = ("topic_id", "topic_name", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("TopicName", "topic_name", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class TopicInfo(Struct):
    __slots__ = ("topic_id", "topic_name")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 0)),
        ("TopicName", "topic_name", "string", (0, 0)),
    )

    def __init__(self, topic_id: bytes = ZERO, topic_name: str = "") -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name


class ShareGroupStatePartitionMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 15
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics")
    SCHEMA = (
        ("InitializingTopics", "initializing_topics", "[]TopicPartitionsInfo", (0, 0)),
        ("InitializedTopics", "initialized_topics", "[]TopicPartitionsInfo", (0, 0)),
        ("DeletingTopics", "deleting_topics", "[]TopicInfo", (0, 0)),
    )

    def __init__(
        self,
        initializing_topics: list[TopicPartitionsInfo] = EMPTY,
        initialized_topics: list[TopicPartitionsInfo] = EMPTY, deleting_topics: list[TopicInfo] = EMPTY,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is EMPTY else initializing_topics
        self.initialized_topics = [] if initialized_topics is EMPTY else initialized_topics
        self.deleting_topics = [] if deleting_topics is EMPTY else deleting_topics
