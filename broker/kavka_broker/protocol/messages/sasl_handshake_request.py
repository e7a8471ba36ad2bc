"""SaslHandshakeRequest: request, key 17, versions 0 to 1, never flexible.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class SaslHandshakeRequest(Message):
    NAME = "SaslHandshakeRequest"
    KIND = "request"
    API_KEY = 17
    VERSIONS = (0, 1)
    __match_args__ = ("mechanism",)
    __slots__ = __match_args__
    SCHEMA = (
        ("Mechanism", "mechanism", "string", (0, 1)),
    )

    def __init__(self, mechanism: str = "") -> None:
        self.mechanism = mechanism
