"""RemoveUserScramCredentialRecord."""

from kavka_broker.protocol.message import Message


class RemoveUserScramCredentialRecord(Message):
    KIND = "metadata"
    API_KEY = 22
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "mechanism")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Mechanism", "mechanism", "int8", (0, 0)),
    )

    def __init__(self, name: str = "", mechanism: int = 0) -> None:
        self.name = name
        self.mechanism = mechanism
