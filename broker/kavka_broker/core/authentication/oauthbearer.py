"""OAUTHBEARER (RFC 7628): a login by a token, in one message.

    n,a=USER,^Aauth=Bearer TOKEN^Aname=value^A^A     (^A is the byte 1; a=USER and further pairs may be missing)

A token that is refused is answered by an error in JSON, as the RFC wants it; the client then sends one byte, and only
the answer to that says that its login has failed. The log of the broker has the reason, and the client has not.
"""

import re
from typing import Final

from kavka_broker.core.authentication.token_claims import TOKEN_BYTES_MAX, TokenError, TokenJudge
from kavka_broker.protocol.errors import BrokerError, ErrorCode

MECHANISM: Final = "OAUTHBEARER"
REFUSAL: Final = '{"status":"invalid_token"}'
MESSAGE_BYTES_MAX: Final = TOKEN_BYTES_MAX + 4_096
PAIRS_MAX: Final = 100
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<other>(?:[\x02-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01(?P<pairs>(?:{_PAIR}){{0,{PAIRS_MAX}}})\x01"
)
_BEARER: Final = re.compile(r"bearer +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.IGNORECASE)


class Exchange:
    """The exchange of one login."""

    __slots__ = ("_is_refused", "_judge", "_now_ms", "expires_ms", "reason")

    def __init__(self, judge: TokenJudge, now_ms: int) -> None:
        self._judge = judge
        self._now_ms = now_ms
        self._is_refused = False
        self.expires_ms: int | None = None  # once the token has named a user
        self.reason = ""  # why it was refused, for the log

    def take(self, message: bytes) -> tuple[bytes, str | None]:
        """Take a client's message; the answer, and the user once a token has named one. Raises
        SASL_AUTHENTICATION_FAILED.
        """
        if self._is_refused:
            raise BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSAL)
        other, token = _parsed(message)
        try:
            user, self.expires_ms = self._judge.judge(token, self._now_ms)
        except TokenError as error:
            self._is_refused, self.reason = True, str(error)
            return REFUSAL.encode(), None
        if other not in {"", user}:
            words = f"Client requested an authorization id ({other}) that is different from the token's principal name"
            raise BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"Authentication failed: {words} ({user})")
        return b"", user


def _parsed(message: bytes) -> tuple[str, str]:
    """The user that is asked for, empty where none is, and the token. Raises SASL_AUTHENTICATION_FAILED."""
    found = _FIRST.fullmatch(message.decode(errors="replace")) if len(message) <= MESSAGE_BYTES_MAX else None
    pairs = [] if found is None else [pair.partition("=")[::2] for pair in found["pairs"].split("\x01") if pair]
    values = dict(pairs)
    bearer = _BEARER.fullmatch(values.get("auth", ""))
    if found is None or bearer is None or len(values) != len(pairs):
        words = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
        raise BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"{words} {MECHANISM}")
    return found["other"] or "", bearer["token"]
