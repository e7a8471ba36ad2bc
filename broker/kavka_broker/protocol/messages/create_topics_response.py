"""CreateTopicsResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class CreatableTopicConfigs(Struct):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")
    SCHEMA = (
        ("Name", "name", "string", (5, 7)),
        ("Value", "value", "string", (5, 7), (5, 7)),
        ("ReadOnly", "read_only", "bool", (5, 7)),
        ("ConfigSource", "config_source", "int8", (5, 7), None, None, None, -1, True),
        ("IsSensitive", "is_sensitive", "bool", (5, 7)),
    )

    def __init__(
        self,
        name: str = "", value: str | None = "", read_only: bool = False, config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Struct):
    __slots__ = (
        "name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions",
        "replication_factor", "configs",
    )
    SCHEMA = (
        ("Name", "name", "string", (2, 7)),
        ("TopicId", "topic_id", "uuid", (7, 7), None, None, None, b"", True),
        ("ErrorCode", "error_code", "int16", (2, 7)),
        ("ErrorMessage", "error_message", "string", (2, 7), (2, 7), None, None, "", True),
        ("TopicConfigErrorCode", "topic_config_error_code", "int16", (5, 7), None, (5, 7), 0, 0, True),
        ("NumPartitions", "num_partitions", "int32", (5, 7), None, None, None, -1, True),
        ("ReplicationFactor", "replication_factor", "int16", (5, 7), None, None, None, -1, True),
        ("Configs", "configs", "[]CreatableTopicConfigs", (5, 7), (5, 7), None, None, b"", True),
    )

    def __init__(
        self,
        name: str = "", topic_id: bytes = ZERO, error_code: int = 0, error_message: str | None = "",
        topic_config_error_code: int = 0, num_partitions: int = -1, replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is EMPTY else configs


class CreateTopicsResponse(Message):
    KIND = "response"
    API_KEY = 19
    VERSIONS = (2, 7)
    FLEXIBLE_FROM = 5
    __slots__ = ("throttle_time_ms", "topics")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (2, 7), None, None, None, 0, True),
        ("Topics", "topics", "[]CreatableTopicResult", (2, 7)),
    )

    def __init__(self, throttle_time_ms: int = 0, topics: list[CreatableTopicResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
