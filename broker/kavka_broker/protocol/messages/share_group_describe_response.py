"""ShareGroupDescribeResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct, frozen


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "topic_name", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (1, 1)),
        ("TopicName", "topic_name", "string", (1, 1)),
        ("Partitions", "partitions", "[]int32", (1, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Struct):
    __slots__ = ("topic_partitions",)
    SCHEMA = (
        ("TopicPartitions", "topic_partitions", "[]TopicPartitions", (1, 1)),
    )

    def __init__(self, topic_partitions: list[TopicPartitions] = EMPTY) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


DEFAULT_ASSIGNMENT = frozen(Assignment)


class Member(Struct):
    __slots__ = (
        "member_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names", "assignment",
    )
    SCHEMA = (
        ("MemberId", "member_id", "string", (1, 1)),
        ("RackId", "rack_id", "string", (1, 1), (1, 1), None, None, None),
        ("MemberEpoch", "member_epoch", "int32", (1, 1)),
        ("ClientId", "client_id", "string", (1, 1)),
        ("ClientHost", "client_host", "string", (1, 1)),
        ("SubscribedTopicNames", "subscribed_topic_names", "[]string", (1, 1)),
        ("Assignment", "assignment", "Assignment", (1, 1)),
    )

    def __init__(
        self,
        member_id: str = "", rack_id: str | None = None, member_epoch: int = 0, client_id: str = "",
        client_host: str = "", subscribed_topic_names: list[str] = EMPTY,
        assignment: Assignment = DEFAULT_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.assignment = assignment


class DescribedGroup(Struct):
    __slots__ = (
        "error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch",
        "assignor_name", "members", "authorized_operations",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 1)),
        ("ErrorMessage", "error_message", "string", (1, 1), (1, 1), None, None, None),
        ("GroupId", "group_id", "string", (1, 1)),
        ("GroupState", "group_state", "string", (1, 1)),
        ("GroupEpoch", "group_epoch", "int32", (1, 1)),
        ("AssignmentEpoch", "assignment_epoch", "int32", (1, 1)),
        ("AssignorName", "assignor_name", "string", (1, 1)),
        ("Members", "members", "[]Member", (1, 1)),
        ("AuthorizedOperations", "authorized_operations", "int32", (1, 1), None, None, None, -2147483648),
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


class ShareGroupDescribeResponse(Message):
    KIND = "response"
    API_KEY = 77
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("throttle_time_ms", "groups")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 1)),
        ("Groups", "groups", "[]DescribedGroup", (1, 1)),
    )

    def __init__(self, throttle_time_ms: int = 0, groups: list[DescribedGroup] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
