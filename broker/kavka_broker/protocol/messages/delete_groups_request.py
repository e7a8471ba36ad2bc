"""DeleteGroupsRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class DeleteGroupsRequest(Message):
    KIND = "request"
    API_KEY = 42
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("groups_names",)
    SCHEMA = (
        ("GroupsNames", "groups_names", "[]string", (0, 3)),
    )

    def __init__(self, groups_names: list[str] = EMPTY) -> None:
        self.groups_names = [] if groups_names is EMPTY else groups_names
