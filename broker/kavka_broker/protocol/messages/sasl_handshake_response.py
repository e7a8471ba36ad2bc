"""SaslHandshakeResponse."""

from kavka_broker.protocol.message import EMPTY, Message


class SaslHandshakeResponse(Message):
    KIND = "response"
    API_KEY = 17
    VERSIONS = (0, 1)
    __slots__ = ("error_code", "mechanisms")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("Mechanisms", "mechanisms", "[]string", (0, 1)),
    )

    def __init__(self, error_code: int = 0, mechanisms: list[str] = EMPTY) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is EMPTY else mechanisms
