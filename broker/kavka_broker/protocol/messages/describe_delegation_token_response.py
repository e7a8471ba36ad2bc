"""DescribeDelegationTokenResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribedDelegationTokenRenewer(Struct):
    __slots__ = ("principal_type", "principal_name")
    SCHEMA = (
        ("PrincipalType", "principal_type", "string", (1, 3)),
        ("PrincipalName", "principal_name", "string", (1, 3)),
    )

    def __init__(self, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class DescribedDelegationToken(Struct):
    __slots__ = (
        "principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name",
        "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers",
    )
    SCHEMA = (
        ("PrincipalType", "principal_type", "string", (1, 3)),
        ("PrincipalName", "principal_name", "string", (1, 3)),
        ("TokenRequesterPrincipalType", "token_requester_principal_type", "string", (3, 3)),
        ("TokenRequesterPrincipalName", "token_requester_principal_name", "string", (3, 3)),
        ("IssueTimestamp", "issue_timestamp", "int64", (1, 3)),
        ("ExpiryTimestamp", "expiry_timestamp", "int64", (1, 3)),
        ("MaxTimestamp", "max_timestamp", "int64", (1, 3)),
        ("TokenId", "token_id", "string", (1, 3)),
        ("Hmac", "hmac", "bytes", (1, 3)),
        ("Renewers", "renewers", "[]DescribedDelegationTokenRenewer", (1, 3)),
    )

    def __init__(
        self,
        principal_type: str = "", principal_name: str = "", token_requester_principal_type: str = "",
        token_requester_principal_name: str = "", issue_timestamp: int = 0, expiry_timestamp: int = 0,
        max_timestamp: int = 0, token_id: str = "", hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is EMPTY else renewers


class DescribeDelegationTokenResponse(Message):
    KIND = "response"
    API_KEY = 41
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("error_code", "tokens", "throttle_time_ms")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 3)),
        ("Tokens", "tokens", "[]DescribedDelegationToken", (1, 3)),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 3)),
    )

    def __init__(
        self,
        error_code: int = 0, tokens: list[DescribedDelegationToken] = EMPTY, throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is EMPTY else tokens
        self.throttle_time_ms = throttle_time_ms
