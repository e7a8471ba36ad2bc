"""ShareGroupDescribeRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class ShareGroupDescribeRequest(Message):
    KIND = "request"
    API_KEY = 77
    VERSIONS = (1, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("group_ids", "include_authorized_operations")
    SCHEMA = (
        ("GroupIds", "group_ids", "[]string", (1, 1)),
        ("IncludeAuthorizedOperations", "include_authorized_operations", "bool", (1, 1)),
    )

    def __init__(self, group_ids: list[str] = EMPTY, include_authorized_operations: bool = False) -> None:
        self.group_ids = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations = include_authorized_operations
