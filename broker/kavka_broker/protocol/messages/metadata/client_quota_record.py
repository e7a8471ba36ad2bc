"""ClientQuotaRecord."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class EntityData(Struct):
    __slots__ = ("entity_type", "entity_name")
    SCHEMA = (
        ("EntityType", "entity_type", "string", (0, 0)),
        ("EntityName", "entity_name", "string", (0, 0), (0, 0)),
    )

    def __init__(self, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ClientQuotaRecord(Message):
    KIND = "metadata"
    API_KEY = 14
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("entity", "key", "value", "remove")
    SCHEMA = (
        ("Entity", "entity", "[]EntityData", (0, 0)),
        ("Key", "key", "string", (0, 0)),
        ("Value", "value", "float64", (0, 0)),
        ("Remove", "remove", "bool", (0, 0)),
    )

    def __init__(
        self,
        entity: list[EntityData] = EMPTY, key: str = "", value: float = 0.0, remove: bool = False,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.key = key
        self.value = value
        self.remove = remove
