"""ConsumerGroupDescribeRequest: request, key 69, versions 0 to 1, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message


class ConsumerGroupDescribeRequest(Message):
    NAME = "ConsumerGroupDescribeRequest"
    KIND = "request"
    API_KEY = 69
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __match_args__ = ("group_ids", "include_authorized_operations")
    __slots__ = __match_args__
    SCHEMA = (
        ("GroupIds", "group_ids", "[]string", (0, 1), None, None, None, b"", False, None),
        (
            "IncludeAuthorizedOperations", "include_authorized_operations", "bool",
            (0, 1), None, None, None, False, False, None,
        ),
    )

    def __init__(
        self,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations = include_authorized_operations
