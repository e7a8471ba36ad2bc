"""DescribeGroupsRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class DescribeGroupsRequest(Message):
    KIND = "request"
    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 5
    __slots__ = ("groups", "include_authorized_operations")
    SCHEMA = (
        ("Groups", "groups", "[]string", (0, 6)),
        ("IncludeAuthorizedOperations", "include_authorized_operations", "bool", (3, 6)),
    )

    def __init__(self, groups: list[str] = EMPTY, include_authorized_operations: bool = False) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.include_authorized_operations = include_authorized_operations
