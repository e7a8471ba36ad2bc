"""StreamsGroupHeartbeatRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class KeyValue(Struct):
    __slots__ = ("key", "value")
    SCHEMA = (
        ("Key", "key", "string", (0, 0)),
        ("Value", "value", "string", (0, 0)),
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
        ("TopicConfigs", "topic_configs", "[]KeyValue", (0, 0)),
    )

    def __init__(
        self,
        name: str = "", partitions: int = 0, replication_factor: int = 0, topic_configs: list[KeyValue] = EMPTY,
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


class Topology(Struct):
    __slots__ = ("epoch", "subtopologies")
    SCHEMA = (
        ("Epoch", "epoch", "int32", (0, 0)),
        ("Subtopologies", "subtopologies", "[]Subtopology", (0, 0)),
    )

    def __init__(self, epoch: int = 0, subtopologies: list[Subtopology] = EMPTY) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is EMPTY else subtopologies


class TaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions")
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, subtopology_id: str = "", partitions: list[int] = EMPTY) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions


class Endpoint(Struct):
    __slots__ = ("host", "port")
    SCHEMA = (
        ("Host", "host", "string", (0, 0)),
        ("Port", "port", "uint16", (0, 0)),
    )

    def __init__(self, host: str = "", port: int = 0) -> None:
        self.host = host
        self.port = port


class TaskOffset(Struct):
    __slots__ = ("subtopology_id", "partition", "offset")
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("Partition", "partition", "int32", (0, 0)),
        ("Offset", "offset", "int64", (0, 0)),
    )

    def __init__(self, subtopology_id: str = "", partition: int = 0, offset: int = 0) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset


class StreamsGroupHeartbeatRequest(Message):
    KIND = "request"
    API_KEY = 88
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "group_id", "member_id", "member_epoch", "endpoint_information_epoch", "instance_id", "rack_id",
        "rebalance_timeout_ms", "topology", "active_tasks", "standby_tasks", "warmup_tasks", "process_id",
        "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "shutdown_application",
    )
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("MemberId", "member_id", "string", (0, 0)),
        ("MemberEpoch", "member_epoch", "int32", (0, 0)),
        ("EndpointInformationEpoch", "endpoint_information_epoch", "int32", (0, 0)),
        ("InstanceId", "instance_id", "string", (0, 0), (0, 0), None, None, None),
        ("RackId", "rack_id", "string", (0, 0), (0, 0), None, None, None),
        ("RebalanceTimeoutMs", "rebalance_timeout_ms", "int32", (0, 0), None, None, None, -1),
        ("Topology", "topology", "Topology", (0, 0), (0, 0), None, None, None),
        ("ActiveTasks", "active_tasks", "[]TaskIds", (0, 0), (0, 0), None, None, None),
        ("StandbyTasks", "standby_tasks", "[]TaskIds", (0, 0), (0, 0), None, None, None),
        ("WarmupTasks", "warmup_tasks", "[]TaskIds", (0, 0), (0, 0), None, None, None),
        ("ProcessId", "process_id", "string", (0, 0), (0, 0), None, None, None),
        ("UserEndpoint", "user_endpoint", "Endpoint", (0, 0), (0, 0), None, None, None),
        ("ClientTags", "client_tags", "[]KeyValue", (0, 0), (0, 0), None, None, None),
        ("TaskOffsets", "task_offsets", "[]TaskOffset", (0, 0), (0, 0), None, None, None),
        ("TaskEndOffsets", "task_end_offsets", "[]TaskOffset", (0, 0), (0, 0), None, None, None),
        ("ShutdownApplication", "shutdown_application", "bool", (0, 0)),
    )

    def __init__(
        self,
        group_id: str = "", member_id: str = "", member_epoch: int = 0, endpoint_information_epoch: int = 0,
        instance_id: str | None = None, rack_id: str | None = None, rebalance_timeout_ms: int = -1,
        topology: Topology | None = None, active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None, warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None, user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None, task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None, shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application
