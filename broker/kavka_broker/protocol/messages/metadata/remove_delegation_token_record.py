"""RemoveDelegationTokenRecord."""

from kavka_broker.protocol.message import Message


class RemoveDelegationTokenRecord(Message):
    KIND = "metadata"
    API_KEY = 26
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("token_id",)
    SCHEMA = (
        ("TokenId", "token_id", "string", (0, 0)),
    )

    def __init__(self, token_id: str = "") -> None:
        self.token_id = token_id
