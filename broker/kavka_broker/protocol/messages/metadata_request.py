"""MetadataRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class MetadataRequestTopic(Struct):
    __slots__ = ("topic_id", "name")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (10, 13), None, None, None, b"", True),
        ("Name", "name", "string", (0, 13), (10, 13)),
    )

    def __init__(self, topic_id: bytes = ZERO, name: str | None = "") -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Message):
    KIND = "request"
    API_KEY = 3
    VERSIONS = (0, 13)
    FLEXIBLE_FROM = 9
    __slots__ = (
        "topics", "allow_auto_topic_creation", "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    SCHEMA = (
        ("Topics", "topics", "[]MetadataRequestTopic", (0, 13), (1, 13)),
        ("AllowAutoTopicCreation", "allow_auto_topic_creation", "bool", (4, 13), None, None, None, True),
        ("IncludeClusterAuthorizedOperations", "include_cluster_authorized_operations", "bool", (8, 10)),
        ("IncludeTopicAuthorizedOperations", "include_topic_authorized_operations", "bool", (8, 13)),
    )

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = EMPTY, allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False, include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
