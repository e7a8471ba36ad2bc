"""ListConfigResourcesRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class ListConfigResourcesRequest(Message):
    KIND = "request"
    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __slots__ = ("resource_types",)
    SCHEMA = (
        ("ResourceTypes", "resource_types", "[]int8", (1, 1)),
    )

    def __init__(self, resource_types: list[int] = EMPTY) -> None:
        self.resource_types = [] if resource_types is EMPTY else resource_types
