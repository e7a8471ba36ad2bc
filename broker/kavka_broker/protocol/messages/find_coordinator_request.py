"""FindCoordinatorRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class FindCoordinatorRequest(Message):
    KIND = "request"
    API_KEY = 10
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 3
    __slots__ = ("key", "key_type", "coordinator_keys")
    SCHEMA = (
        ("Key", "key", "string", (0, 3)),
        ("KeyType", "key_type", "int8", (1, 6)),
        ("CoordinatorKeys", "coordinator_keys", "[]string", (4, 6)),
    )

    def __init__(self, key: str = "", key_type: int = 0, coordinator_keys: list[str] = EMPTY) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is EMPTY else coordinator_keys
