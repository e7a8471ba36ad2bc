"""CreateDelegationTokenRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class CreatableRenewers(Struct):
    __slots__ = ("principal_type", "principal_name")
    SCHEMA = (
        ("PrincipalType", "principal_type", "string", (1, 3)),
        ("PrincipalName", "principal_name", "string", (1, 3)),
    )

    def __init__(self, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class CreateDelegationTokenRequest(Message):
    KIND = "request"
    API_KEY = 38
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")
    SCHEMA = (
        ("OwnerPrincipalType", "owner_principal_type", "string", (3, 3), (3, 3)),
        ("OwnerPrincipalName", "owner_principal_name", "string", (3, 3), (3, 3)),
        ("Renewers", "renewers", "[]CreatableRenewers", (1, 3)),
        ("MaxLifetimeMs", "max_lifetime_ms", "int64", (1, 3)),
    )

    def __init__(
        self,
        owner_principal_type: str | None = "", owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = EMPTY, max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms = max_lifetime_ms
