"""DescribeDelegationTokenResponse: response, key 41, versions 1 to 3, flexible from 2.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribedDelegationTokenRenewer(Struct):
    __match_args__ = ("principal_type", "principal_name")
    __slots__ = __match_args__
    SCHEMA = (
        ("PrincipalType", "principal_type", "string", (1, 3), None, None, None, "", False, None),
        ("PrincipalName", "principal_name", "string", (1, 3), None, None, None, "", False, None),
    )

    def __init__(self, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class DescribedDelegationToken(Struct):
    __match_args__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )
    __slots__ = __match_args__
    SCHEMA = (
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
        ("IssueTimestamp", "issue_timestamp", "int64", (1, 3), None, None, None, 0, False, None),
        ("ExpiryTimestamp", "expiry_timestamp", "int64", (1, 3), None, None, None, 0, False, None),
        ("MaxTimestamp", "max_timestamp", "int64", (1, 3), None, None, None, 0, False, None),
        ("TokenId", "token_id", "string", (1, 3), None, None, None, "", False, None),
        ("Hmac", "hmac", "bytes", (1, 3), None, None, None, b"", False, None),
        (
            "Renewers", "renewers", "[]DescribedDelegationTokenRenewer",
            (1, 3), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
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
    NAME = "DescribeDelegationTokenResponse"
    KIND = "response"
    API_KEY = 41
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    __match_args__ = ("error_code", "tokens", "throttle_time_ms")
    __slots__ = __match_args__
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 3), None, None, None, 0, False, None),
        (
            "Tokens", "tokens", "[]DescribedDelegationToken",
            (1, 3), None, None, None, b"", False, None,
        ),
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 3), None, None, None, 0, False, None),
    )

    def __init__(
        self,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = EMPTY,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is EMPTY else tokens
        self.throttle_time_ms = throttle_time_ms
