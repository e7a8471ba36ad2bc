"""ShareGroupHeartbeatRequest."""

from kavka_broker.protocol.message import Message


class ShareGroupHeartbeatRequest(Message):
    KIND = "request"
    API_KEY = 76
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")
    SCHEMA = (
        ("GroupId", "group_id", "string", (1, 1)),
        ("MemberId", "member_id", "string", (1, 1)),
        ("MemberEpoch", "member_epoch", "int32", (1, 1)),
        ("RackId", "rack_id", "string", (1, 1), (1, 1), None, None, None),
        ("SubscribedTopicNames", "subscribed_topic_names", "[]string", (1, 1), (1, 1), None, None, None),
    )

    def __init__(
        self,
        group_id: str = "", member_id: str = "", member_epoch: int = 0, rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
