"""DescribeClientQuotasResponse."""

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


class ValueData(Struct):
    __slots__ = ("key", "value")
    SCHEMA = (
        ("Key", "key", "string", (0, 1)),
        ("Value", "value", "float64", (0, 1)),
    )

    def __init__(self, key: str = "", value: float = 0.0) -> None:
        self.key = key
        self.value = value


class EntryData(Struct):
    __slots__ = ("entity", "values")
    SCHEMA = (
        ("Entity", "entity", "[]EntityData", (0, 1)),
        ("Values", "values", "[]ValueData", (0, 1)),
    )

    def __init__(self, entity: list[EntityData] = EMPTY, values: list[ValueData] = EMPTY) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.values = [] if values is EMPTY else values


class DescribeClientQuotasResponse(Message):
    KIND = "response"
    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 1)),
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1)),
        ("Entries", "entries", "[]EntryData", (0, 1), (0, 1)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        entries: list[EntryData] | None = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is EMPTY else entries
