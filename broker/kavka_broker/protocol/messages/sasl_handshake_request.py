"""SaslHandshakeRequest."""

from kavka_broker.protocol.message import Message


class SaslHandshakeRequest(Message):
    KIND = "request"
    API_KEY = 17
    VERSIONS = (0, 1)
    __slots__ = ("mechanism",)
    SCHEMA = (
        ("Mechanism", "mechanism", "string", (0, 1)),
    )

    def __init__(self, mechanism: str = "") -> None:
        self.mechanism = mechanism
