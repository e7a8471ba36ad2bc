"""StreamsGroupDescribeResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct, frozen


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


class Subtopology(Struct):
    __slots__ = (
        "subtopology_id", "source_topics", "repartition_sink_topics", "state_changelog_topics",
        "repartition_source_topics",
    )
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("SourceTopics", "source_topics", "[]string", (0, 0)),
        ("RepartitionSinkTopics", "repartition_sink_topics", "[]string", (0, 0)),
        ("StateChangelogTopics", "state_changelog_topics", "[]TopicInfo", (0, 0)),
        ("RepartitionSourceTopics", "repartition_source_topics", "[]TopicInfo", (0, 0)),
    )

    def __init__(
        self,
        subtopology_id: str = "", source_topics: list[str] = EMPTY, repartition_sink_topics: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY, repartition_source_topics: list[TopicInfo] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics


class Topology(Struct):
    __slots__ = ("epoch", "subtopologies")
    SCHEMA = (
        ("Epoch", "epoch", "int32", (0, 0)),
        ("Subtopologies", "subtopologies", "[]Subtopology", (0, 0), (0, 0), None, None, None),
    )

    def __init__(self, epoch: int = 0, subtopologies: list[Subtopology] | None = None) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


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


class TaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions")
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, subtopology_id: str = "", partitions: list[int] = EMPTY) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Struct):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    SCHEMA = (
        ("ActiveTasks", "active_tasks", "[]TaskIds", (0, 0)),
        ("StandbyTasks", "standby_tasks", "[]TaskIds", (0, 0)),
        ("WarmupTasks", "warmup_tasks", "[]TaskIds", (0, 0)),
    )

    def __init__(
        self,
        active_tasks: list[TaskIds] = EMPTY, standby_tasks: list[TaskIds] = EMPTY,
        warmup_tasks: list[TaskIds] = EMPTY,
    ) -> None:
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks


DEFAULT_ASSIGNMENT = frozen(Assignment)


class Member(Struct):
    __slots__ = (
        "member_id", "member_epoch", "instance_id", "rack_id", "client_id", "client_host", "topology_epoch",
        "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "assignment",
        "target_assignment", "is_classic",
    )
    SCHEMA = (
        ("MemberId", "member_id", "string", (0, 0)),
        ("MemberEpoch", "member_epoch", "int32", (0, 0)),
        ("InstanceId", "instance_id", "string", (0, 0), (0, 0), None, None, None),
        ("RackId", "rack_id", "string", (0, 0), (0, 0), None, None, None),
        ("ClientId", "client_id", "string", (0, 0)),
        ("ClientHost", "client_host", "string", (0, 0)),
        ("TopologyEpoch", "topology_epoch", "int32", (0, 0)),
        ("ProcessId", "process_id", "string", (0, 0)),
        ("UserEndpoint", "user_endpoint", "Endpoint", (0, 0), (0, 0), None, None, None),
        ("ClientTags", "client_tags", "[]KeyValue", (0, 0)),
        ("TaskOffsets", "task_offsets", "[]TaskOffset", (0, 0)),
        ("TaskEndOffsets", "task_end_offsets", "[]TaskOffset", (0, 0)),
        ("Assignment", "assignment", "Assignment", (0, 0)),
        ("TargetAssignment", "target_assignment", "Assignment", (0, 0)),
        ("IsClassic", "is_classic", "bool", (0, 0)),
    )

    def __init__(
        self,
        member_id: str = "", member_epoch: int = 0, instance_id: str | None = None, rack_id: str | None = None,
        client_id: str = "", client_host: str = "", topology_epoch: int = 0, process_id: str = "",
        user_endpoint: Endpoint | None = None, client_tags: list[KeyValue] = EMPTY,
        task_offsets: list[TaskOffset] = EMPTY, task_end_offsets: list[TaskOffset] = EMPTY,
        assignment: Assignment = DEFAULT_ASSIGNMENT, target_assignment: Assignment = DEFAULT_ASSIGNMENT,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is EMPTY else client_tags
        self.task_offsets = [] if task_offsets is EMPTY else task_offsets
        self.task_end_offsets = [] if task_end_offsets is EMPTY else task_end_offsets
        self.assignment = assignment
        self.target_assignment = target_assignment
        self.is_classic = is_classic


class DescribedGroup(Struct):
    __slots__ = (
        "error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology",
        "members", "authorized_operations",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ErrorMessage", "error_message", "string", (0, 0), (0, 0), None, None, None),
        ("GroupId", "group_id", "string", (0, 0)),
        ("GroupState", "group_state", "string", (0, 0)),
        ("GroupEpoch", "group_epoch", "int32", (0, 0)),
        ("AssignmentEpoch", "assignment_epoch", "int32", (0, 0)),
        ("Topology", "topology", "Topology", (0, 0), (0, 0), None, None, None),
        ("Members", "members", "[]Member", (0, 0)),
        ("AuthorizedOperations", "authorized_operations", "int32", (0, 0), None, None, None, -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = None, group_id: str = "", group_state: str = "",
        group_epoch: int = 0, assignment_epoch: int = 0, topology: Topology | None = None,
        members: list[Member] = EMPTY, authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class StreamsGroupDescribeResponse(Message):
    KIND = "response"
    API_KEY = 89
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "groups")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("Groups", "groups", "[]DescribedGroup", (0, 0)),
    )

    def __init__(self, throttle_time_ms: int = 0, groups: list[DescribedGroup] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
