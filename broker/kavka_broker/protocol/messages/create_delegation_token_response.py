"""CreateDelegationTokenResponse: response, key 38, versions 1 to 3, flexible from 2.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class CreateDelegationTokenResponse(Message):
    NAME = "CreateDelegationTokenResponse"
    KIND = "response"
    API_KEY = 38
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __match_args__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )
    __slots__ = __match_args__
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 3), None, None, None, 0, False, None),
        ("PrincipalType", "principal_type", "string", (1, 3), None, None, None, "", False, None),
        ("PrincipalName", "principal_name", "string", (1, 3), None, None, None, "", False, None),
        (
            "TokenRequesterPrincipalType", "token_requester_principal_type", "string",
            (3, 3), None, None, None, "", False, None,
        ),
        (
            "TokenRequesterPrincipalName", "token_requester_principal_name", "string",
            (3, 3), None, None, None, "", False, None,
        ),
        ("IssueTimestampMs", "issue_timestamp_ms", "int64", (1, 3), None, None, None, 0, False, None),
        (
            "ExpiryTimestampMs", "expiry_timestamp_ms", "int64",
            (1, 3), None, None, None, 0, False, None,
        ),
        ("MaxTimestampMs", "max_timestamp_ms", "int64", (1, 3), None, None, None, 0, False, None),
        ("TokenId", "token_id", "string", (1, 3), None, None, None, "", False, None),
        ("Hmac", "hmac", "bytes", (1, 3), None, None, None, b"", False, None),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 3), None, None, None, 0, False, None),
    )

    def __init__(
        self,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
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
