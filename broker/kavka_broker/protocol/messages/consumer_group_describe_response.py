"""ConsumerGroupDescribeResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct, frozen


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "topic_name", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1)),
        ("TopicName", "topic_name", "string", (0, 1)),
        ("Partitions", "partitions", "[]int32", (0, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Struct):
    __slots__ = ("topic_partitions",)
    SCHEMA = (
        ("TopicPartitions", "topic_partitions", "[]TopicPartitions", (0, 1)),
    )

    def __init__(self, topic_partitions: list[TopicPartitions] = EMPTY) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


DEFAULT_ASSIGNMENT = frozen(Assignment)


class Member(Struct):
    __slots__ = (
        "member_id", "instance_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names",
        "subscribed_topic_regex", "assignment", "target_assignment", "member_type",
    )
    SCHEMA = (
        ("MemberId", "member_id", "string", (0, 1)),
        ("InstanceId", "instance_id", "string", (0, 1), (0, 1), None, None, None),
        ("RackId", "rack_id", "string", (0, 1), (0, 1), None, None, None),
        ("MemberEpoch", "member_epoch", "int32", (0, 1)),
        ("ClientId", "client_id", "string", (0, 1)),
        ("ClientHost", "client_host", "string", (0, 1)),
        ("SubscribedTopicNames", "subscribed_topic_names", "[]string", (0, 1)),
        ("SubscribedTopicRegex", "subscribed_topic_regex", "string", (0, 1), (0, 1), None, None, None),
        ("Assignment", "assignment", "Assignment", (0, 1)),
        ("TargetAssignment", "target_assignment", "Assignment", (0, 1)),
        ("MemberType", "member_type", "int8", (1, 1), None, None, None, -1, True),
    )

    def __init__(
        self,
        member_id: str = "", instance_id: str | None = None, rack_id: str | None = None, member_epoch: int = 0,
        client_id: str = "", client_host: str = "", subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = None, assignment: Assignment = DEFAULT_ASSIGNMENT,
        target_assignment: Assignment = DEFAULT_ASSIGNMENT, member_type: int = -1,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = assignment
        self.target_assignment = target_assignment
        self.member_type = member_type


class DescribedGroup(Struct):
    __slots__ = (
        "error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch",
        "assignor_name", "members", "authorized_operations",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None),
        ("GroupId", "group_id", "string", (0, 1)),
        ("GroupState", "group_state", "string", (0, 1)),
        ("GroupEpoch", "group_epoch", "int32", (0, 1)),
        ("AssignmentEpoch", "assignment_epoch", "int32", (0, 1)),
        ("AssignorName", "assignor_name", "string", (0, 1)),
        ("Members", "members", "[]Member", (0, 1)),
        ("AuthorizedOperations", "authorized_operations", "int32", (0, 1), None, None, None, -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = None, group_id: str = "", group_state: str = "",
        group_epoch: int = 0, assignment_epoch: int = 0, assignor_name: str = "", members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class ConsumerGroupDescribeResponse(Message):
    KIND = "response"
    API_KEY = 69
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "groups")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1)),
        ("Groups", "groups", "[]DescribedGroup", (0, 1)),
    )

    def __init__(self, throttle_time_ms: int = 0, groups: list[DescribedGroup] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
