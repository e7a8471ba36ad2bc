"""ListGroupsRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class ListGroupsRequest(Message):
    KIND = "request"
    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = ("states_filter", "types_filter")
    SCHEMA = (
        ("StatesFilter", "states_filter", "[]string", (4, 5)),
        ("TypesFilter", "types_filter", "[]string", (5, 5)),
    )

    def __init__(self, states_filter: list[str] = EMPTY, types_filter: list[str] = EMPTY) -> None:
        self.states_filter = [] if states_filter is EMPTY else states_filter
        self.types_filter = [] if types_filter is EMPTY else types_filter
