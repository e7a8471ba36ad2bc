"""DefaultPrincipalData."""

from kavka_broker.protocol.message import Message


class DefaultPrincipalData(Message):
    KIND = "data"
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("type", "name", "token_authenticated")
    SCHEMA = (
        ("Type", "type", "string", (0, 0)),
        ("Name", "name", "string", (0, 0)),
        ("TokenAuthenticated", "token_authenticated", "bool", (0, 0)),
    )

    def __init__(self, type: str = "", name: str = "", token_authenticated: bool = False) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
