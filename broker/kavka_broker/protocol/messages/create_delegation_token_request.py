"""CreateDelegationTokenRequest: request, key 38, versions 1 to 3, flexible from 2.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class CreatableRenewers(Struct):
    __match_args__ = ("principal_type", "principal_name")
    __slots__ = __match_args__
    SCHEMA = (
        ("PrincipalType", "principal_type", "string", (1, 3), None, None, None, "", False, None),
        ("PrincipalName", "principal_name", "string", (1, 3), None, None, None, "", False, None),
    )

    def __init__(self, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class CreateDelegationTokenRequest(Message):
    NAME = "CreateDelegationTokenRequest"
    KIND = "request"
    API_KEY = 38
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __match_args__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")
    __slots__ = __match_args__
    SCHEMA = (
        (
            "OwnerPrincipalType", "owner_principal_type", "string",
            (3, 3), (3, 3), None, None, "", False, None,
        ),
        (
            "OwnerPrincipalName", "owner_principal_name", "string",
            (3, 3), (3, 3), None, None, "", False, None,
        ),
        ("Renewers", "renewers", "[]CreatableRenewers", (1, 3), None, None, None, b"", False, None),
        ("MaxLifetimeMs", "max_lifetime_ms", "int64", (1, 3), None, None, None, 0, False, None),
    )

    def __init__(
        self,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = EMPTY,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms = max_lifetime_ms
