"""StreamsGroupTopologyValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TopicConfig(Struct):
    __slots__ = ("key", "value")
    SCHEMA = (
        ("key", "key", "string", (0, 0)),
        ("value", "value", "string", (0, 0)),
    )

    def __init__(self, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


class TopicInfo(Struct):
    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Partitions", "partitions", "int32", (0, 0)),
        ("ReplicationFactor", "replication_factor", "int16", (0, 0)),
        ("TopicConfigs", "topic_configs", "[]TopicConfig", (0, 0)),
    )

    def __init__(
        self,
        name: str = "", partitions: int = 0, replication_factor: int = 0, topic_configs: list[TopicConfig] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is EMPTY else topic_configs


class CopartitionGroup(Struct):
    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")
    SCHEMA = (
        ("SourceTopics", "source_topics", "[]int16", (0, 0)),
        ("SourceTopicRegex", "source_topic_regex", "[]int16", (0, 0)),
        ("RepartitionSourceTopics", "repartition_source_topics", "[]int16", (0, 0)),
    )

    def __init__(
        self,
        source_topics: list[int] = EMPTY, source_topic_regex: list[int] = EMPTY,
        repartition_source_topics: list[int] = EMPTY,
    ) -> None:
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics


class Subtopology(Struct):
    __slots__ = (
        "subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics",
        "repartition_sink_topics", "repartition_source_topics", "copartition_groups",
    )
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("SourceTopics", "source_topics", "[]string", (0, 0)),
        ("SourceTopicRegex", "source_topic_regex", "[]string", (0, 0)),
        ("StateChangelogTopics", "state_changelog_topics", "[]TopicInfo", (0, 0)),
        ("RepartitionSinkTopics", "repartition_sink_topics", "[]string", (0, 0)),
        ("RepartitionSourceTopics", "repartition_source_topics", "[]TopicInfo", (0, 0)),
        ("CopartitionGroups", "copartition_groups", "[]CopartitionGroup", (0, 0)),
    )

    def __init__(
        self,
        subtopology_id: str = "", source_topics: list[str] = EMPTY, source_topic_regex: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY, repartition_sink_topics: list[str] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY, copartition_groups: list[CopartitionGroup] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
        self.copartition_groups = [] if copartition_groups is EMPTY else copartition_groups


class StreamsGroupTopologyValue(Message):
    KIND = "coordinator-value"
    API_KEY = 23
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("epoch", "subtopologies")
    SCHEMA = (
        ("Epoch", "epoch", "int32", (0, 0)),
        ("Subtopologies", "subtopologies", "[]Subtopology", (0, 0)),
    )

    def __init__(self, epoch: int = 0, subtopologies: list[Subtopology] = EMPTY) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is EMPTY else subtopologies
