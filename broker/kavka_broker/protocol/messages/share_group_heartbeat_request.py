"""ShareGroupHeartbeatRequest: request, key 76, version 1, flexible from 1.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class ShareGroupHeartbeatRequest(Message):
    NAME = "ShareGroupHeartbeatRequest"
    KIND = "request"
    API_KEY = 76
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 1
    __match_args__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupId", "group_id", "string", (1, 1), None, None, None, "", False, None),
        ("MemberId", "member_id", "string", (1, 1), None, None, None, "", False, None),
        ("MemberEpoch", "member_epoch", "int32", (1, 1), None, None, None, 0, False, None),
        ("RackId", "rack_id", "string", (1, 1), (1, 1), None, None, None, False, None),
        (
            "SubscribedTopicNames", "subscribed_topic_names", "[]string",
            (1, 1), (1, 1), None, None, None, False, None,
        ),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
