"""DescribeUserScramCredentialsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class UserName(Struct):
    __slots__ = ("name",)
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
    )

    def __init__(self, name: str = "") -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Message):
    KIND = "request"
    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("users",)
    SCHEMA = (
        ("Users", "users", "[]UserName", (0, 0), (0, 0)),
    )

    def __init__(self, users: list[UserName] | None = EMPTY) -> None:
        self.users = [] if users is EMPTY else users
