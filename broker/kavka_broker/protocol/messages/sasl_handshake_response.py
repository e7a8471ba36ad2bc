"""SaslHandshakeResponse: response, key 17, versions 0 to 1, never flexible.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message


class SaslHandshakeResponse(Message):
    NAME = "SaslHandshakeResponse"
    KIND = "response"
    API_KEY = 17
    VERSIONS = (0, 1)
    __match_args__ = ("error_code", "mechanisms")
    __slots__ = __match_args__
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (0, 1)),
        ("Mechanisms", "mechanisms", "[]string", (0, 1)),
    )

    def __init__(self, error_code: int = 0, mechanisms: list[str] = EMPTY) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is EMPTY else mechanisms
