"""DescribeDelegationTokenRequest: request, key 41, versions 1 to 3, flexible from 2.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeDelegationTokenOwner(Struct):
    __match_args__ = ("principal_type", "principal_name")
    __slots__ = __match_args__
    SCHEMA = (
        ("PrincipalType", "principal_type", "string", (1, 3), None, None, None, "", False, None),
        ("PrincipalName", "principal_name", "string", (1, 3), None, None, None, "", False, None),
    )

    def __init__(self, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class DescribeDelegationTokenRequest(Message):
    NAME = "DescribeDelegationTokenRequest"
    KIND = "request"
    API_KEY = 41
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __match_args__ = ("owners",)
    __slots__ = __match_args__
    SCHEMA = (
        (
            "Owners", "owners", "[]DescribeDelegationTokenOwner",
            (1, 3), (1, 3), None, None, b"", False, None,
        ),
    )

    def __init__(self, owners: list[DescribeDelegationTokenOwner] | None = EMPTY) -> None:
        self.owners = [] if owners is EMPTY else owners
