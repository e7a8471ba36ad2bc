"""CreateDelegationTokenResponse."""

from kavka_broker.protocol.message import Message


class CreateDelegationTokenResponse(Message):
    KIND = "response"
    API_KEY = 38
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __slots__ = (
        "error_code", "principal_type", "principal_name", "token_requester_principal_type",
        "token_requester_principal_name", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms",
        "token_id", "hmac", "throttle_time_ms",
    )
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 3)),
        ("PrincipalType", "principal_type", "string", (1, 3)),
        ("PrincipalName", "principal_name", "string", (1, 3)),
        ("TokenRequesterPrincipalType", "token_requester_principal_type", "string", (3, 3)),
        ("TokenRequesterPrincipalName", "token_requester_principal_name", "string", (3, 3)),
        ("IssueTimestampMs", "issue_timestamp_ms", "int64", (1, 3)),
        ("ExpiryTimestampMs", "expiry_timestamp_ms", "int64", (1, 3)),
        ("MaxTimestampMs", "max_timestamp_ms", "int64", (1, 3)),
        ("TokenId", "token_id", "string", (1, 3)),
        ("Hmac", "hmac", "bytes", (1, 3)),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 3)),
    )

    def __init__(
        self,
        error_code: int = 0, principal_type: str = "", principal_name: str = "",
        token_requester_principal_type: str = "", token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0, expiry_timestamp_ms: int = 0, max_timestamp_ms: int = 0, token_id: str = "",
        hmac: bytes = b"", throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms
