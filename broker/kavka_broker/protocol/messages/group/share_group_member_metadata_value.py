"""ShareGroupMemberMetadataValue."""

from kavka_broker.protocol.message import EMPTY, Message


class ShareGroupMemberMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 10
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names")
    SCHEMA = (
        ("RackId", "rack_id", "string", (0, 0), (0, 0)),
        ("ClientId", "client_id", "string", (0, 0)),
        ("ClientHost", "client_host", "string", (0, 0)),
        ("SubscribedTopicNames", "subscribed_topic_names", "[]string", (0, 0)),
    )

    def __init__(
        self,
        rack_id: str | None = "", client_id: str = "", client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
