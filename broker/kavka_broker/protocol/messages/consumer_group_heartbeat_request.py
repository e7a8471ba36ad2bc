"""ConsumerGroupHeartbeatRequest."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions")
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1)),
        ("Partitions", "partitions", "[]int32", (0, 1)),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[int] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerGroupHeartbeatRequest(Message):
    KIND = "request"
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms",
        "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions",
    )
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 1)),
        ("MemberId", "member_id", "string", (0, 1)),
        ("MemberEpoch", "member_epoch", "int32", (0, 1)),
        ("InstanceId", "instance_id", "string", (0, 1), (0, 1), None, None, None),
        ("RackId", "rack_id", "string", (0, 1), (0, 1), None, None, None),
        ("RebalanceTimeoutMs", "rebalance_timeout_ms", "int32", (0, 1), None, None, None, -1),
        ("SubscribedTopicNames", "subscribed_topic_names", "[]string", (0, 1), (0, 1), None, None, None),
        ("SubscribedTopicRegex", "subscribed_topic_regex", "string", (1, 1), (1, 1), None, None, None),
        ("ServerAssignor", "server_assignor", "string", (0, 1), (0, 1), None, None, None),
        ("TopicPartitions", "topic_partitions", "[]TopicPartitions", (0, 1), (0, 1), None, None, None),
    )

    def __init__(
        self,
        group_id: str = "", member_id: str = "", member_epoch: int = 0, instance_id: str | None = None,
        rack_id: str | None = None, rebalance_timeout_ms: int = -1, subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None, server_assignor: str | None = None,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions
