"""StreamsGroupDescribeRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class StreamsGroupDescribeRequest(Message):
    KIND = "request"
    API_KEY = 89
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("group_ids", "include_authorized_operations")
    SCHEMA = (
        ("GroupIds", "group_ids", "[]string", (0, 0)),
        ("IncludeAuthorizedOperations", "include_authorized_operations", "bool", (0, 0)),
    )

    def __init__(self, group_ids: list[str] = EMPTY, include_authorized_operations: bool = False) -> None:
        self.group_ids = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations = include_authorized_operations
