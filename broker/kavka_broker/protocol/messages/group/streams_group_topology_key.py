"""StreamsGroupTopologyKey."""

from kavka_broker.protocol.message import Message


class StreamsGroupTopologyKey(Message):
    KIND = "coordinator-key"
    API_KEY = 23
    VERSIONS = (0, 0)
    __slots__ = ("group_id",)
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
    )

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id
