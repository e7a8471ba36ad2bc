"""DescribeDelegationTokenRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeDelegationTokenOwner(Struct):
    __slots__ = ("principal_type", "principal_name")
    SCHEMA = (
        ("PrincipalType", "principal_type", "string", (1, 3)),
        ("PrincipalName", "principal_name", "string", (1, 3)),
    )

    def __init__(self, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class DescribeDelegationTokenRequest(Message):
    KIND = "request"
    API_KEY = 41
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("owners",)
    SCHEMA = (
        ("Owners", "owners", "[]DescribeDelegationTokenOwner", (1, 3), (1, 3)),
    )

    def __init__(self, owners: list[DescribeDelegationTokenOwner] | None = EMPTY) -> None:
        self.owners = [] if owners is EMPTY else owners
