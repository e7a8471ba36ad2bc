"""AlterClientQuotasRequest."""

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


class OpData(Struct):
    __slots__ = ("key", "value", "remove")
    SCHEMA = (
        ("Key", "key", "string", (0, 1)),
        ("Value", "value", "float64", (0, 1)),
        ("Remove", "remove", "bool", (0, 1)),
    )

    def __init__(self, key: str = "", value: float = 0.0, remove: bool = False) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class EntryData(Struct):
    __slots__ = ("entity", "ops")
    SCHEMA = (
        ("Entity", "entity", "[]EntityData", (0, 1)),
        ("Ops", "ops", "[]OpData", (0, 1)),
    )

    def __init__(self, entity: list[EntityData] = EMPTY, ops: list[OpData] = EMPTY) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.ops = [] if ops is EMPTY else ops


class AlterClientQuotasRequest(Message):
    KIND = "request"
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("entries", "validate_only")
    SCHEMA = (
        ("Entries", "entries", "[]EntryData", (0, 1)),
        ("ValidateOnly", "validate_only", "bool", (0, 1)),
    )

    def __init__(self, entries: list[EntryData] = EMPTY, validate_only: bool = False) -> None:
        self.entries = [] if entries is EMPTY else entries
        self.validate_only = validate_only
