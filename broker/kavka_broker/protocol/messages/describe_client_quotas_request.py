"""DescribeClientQuotasRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ComponentData(Struct):
    __slots__ = ("entity_type", "match_type", "match")
    SCHEMA = (
        ("EntityType", "entity_type", "string", (0, 1)),
        ("MatchType", "match_type", "int8", (0, 1)),
        ("Match", "match", "string", (0, 1), (0, 1)),
    )

    def __init__(self, entity_type: str = "", match_type: int = 0, match: str | None = "") -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Message):
    KIND = "request"
    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 1
    __slots__ = ("components", "strict")
    SCHEMA = (
        ("Components", "components", "[]ComponentData", (0, 1)),
        ("Strict", "strict", "bool", (0, 1)),
    )

    def __init__(self, components: list[ComponentData] = EMPTY, strict: bool = False) -> None:
        self.components = [] if components is EMPTY else components
        self.strict = strict
