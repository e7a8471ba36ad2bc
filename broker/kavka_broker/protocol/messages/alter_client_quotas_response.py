"""AlterClientQuotasResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class EntityData(Struct):
    __slots__ = ("entity_type", "entity_name")
    SCHEMA = (
        ("EntityType", "entity_type", "string", (0, 1)),
        ("EntityName", "entity_name", "string", (0, 1), (0, 1)),
    )

    def __init__(self, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class EntryData(Struct):
    __slots__ = ("error_code", "error_message", "entity")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1)),
        ("Entity", "entity", "[]EntityData", (0, 1)),
    )

    def __init__(
        self,
        error_code: int = 0, error_message: str | None = "", entity: list[EntityData] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is EMPTY else entity


class AlterClientQuotasResponse(Message):
    KIND = "response"
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("throttle_time_ms", "entries")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1)),
        ("Entries", "entries", "[]EntryData", (0, 1)),
    )

    def __init__(self, throttle_time_ms: int = 0, entries: list[EntryData] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is EMPTY else entries
