"""Delegation tokens are made, renewed and ended, as Apache Kafka's controller does it (DelegationTokenControlManager).

- A token holds until its expiry, which its owner and its renewers move, never beyond its end of life.
- To end it at once removes it; a sweep removes those that are over.
- Tokens of others than users are refused: a login by one would be that of the user with the same name.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from kavka_broker.core.client_names import NAME_CHARACTERS_MAX, shortened
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken, DelegationTokens
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord

TOKENS_MAX: Final = 50_000
"""Tokens of a cluster at a time; another is refused until one is over."""
SWEPT_MAX: Final = 1_000
"""Tokens that are removed by one decision of the sweep."""
TIME_MS_MAX: Final = 2**63 - 1
USER: Final = "User"


class Lifetimes(NamedTuple):
    """How long tokens may hold: at all, and from one renewal to the next."""

    max_ms: int
    renewal_ms: int

    @classmethod
    def of(cls, config: BrokerConfig) -> "Lifetimes":
        """As the configuration says."""
        return cls(config["delegation.token.max.lifetime.ms"], config["delegation.token.expiry.time.ms"])


class NewToken(NamedTuple):
    """A token that is asked for. A lifetime of 0 or less asks for the longest."""

    token_id: str
    owner: str
    requester: str
    renewers: Sequence[str]
    lifetime_ms: int


def create(
    tokens: DelegationTokens, wanted: NewToken, lifetimes: Lifetimes, now_ms: int, tokens_max: int = TOKENS_MAX
) -> Decision[DelegationToken]:
    """Make a token. Raises INVALID_PRINCIPAL_TYPE, INVALID_REQUEST, POLICY_VIOLATION."""
    for principal in (wanted.owner, *wanted.renewers):
        kind, _, name = principal.partition(":")
        if kind != USER:
            raise BrokerError(ErrorCode.INVALID_PRINCIPAL_TYPE, f"{shortened(principal)} is no {USER}")
        if len(name) > NAME_CHARACTERS_MAX:
            words = f"{shortened(name)} has more than {NAME_CHARACTERS_MAX} characters"
            raise BrokerError(ErrorCode.INVALID_REQUEST, words)
    if len(tokens) >= tokens_max:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, f"there are {tokens_max} delegation tokens")
    assert tokens.of(wanted.token_id) is None, "an id was drawn twice"
    max_ms = _later(now_ms, lifetimes.max_ms, wanted.lifetime_ms)
    expires_ms = min(max_ms, _later(now_ms, lifetimes.renewal_ms))
    token = DelegationToken(
        wanted.token_id, wanted.owner, wanted.requester, tuple(wanted.renewers), now_ms, max_ms, expires_ms
    )
    return Decision([token.record()], token)


def renew(
    tokens: DelegationTokens, token_id: str | None, principal: str, period_ms: int, lifetimes: Lifetimes, now_ms: int
) -> Decision[int]:
    """Move the expiry of a token; the answer is the new one. A period of 0 or less asks for the longest. Raises
    BrokerError.
    """
    token = _found(tokens, token_id)
    _check_holds(token, now_ms)
    _check_owner(token, principal)
    expires_ms = min(token.max_ms, _later(now_ms, lifetimes.renewal_ms, period_ms))
    return Decision([token._replace(expires_ms=expires_ms).record()], expires_ms)


def expire(
    tokens: DelegationTokens, token_id: str | None, principal: str, period_ms: int, now_ms: int
) -> Decision[int]:
    """Have a token expire after a period, or remove it where that is negative, whether it is over or not; the answer is
    when. Raises BrokerError.
    """
    token = _found(tokens, token_id)
    _check_owner(token, principal)
    if period_ms < 0:
        return Decision([RemoveDelegationTokenRecord(token.token_id)], now_ms)
    _check_holds(token, now_ms)
    expires_ms = min(token.max_ms, now_ms + period_ms)
    return Decision([token._replace(expires_ms=expires_ms).record()], expires_ms)


def sweep(tokens: DelegationTokens, now_ms: int, swept_max: int = SWEPT_MAX) -> Decision[int]:
    """Remove tokens that are over, so many at most; the answer is how many."""
    over = islice((token_id for token_id, token in tokens.by_id.items() if token.is_over(now_ms)), swept_max)
    records = [RemoveDelegationTokenRecord(token_id) for token_id in over]
    return Decision(records, len(records))


def _found(tokens: DelegationTokens, token_id: str | None) -> DelegationToken:
    """The token of this id. Raises DELEGATION_TOKEN_NOT_FOUND."""
    token = None if token_id is None else tokens.of(token_id)
    if token is None:
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_holds(token: DelegationToken, now_ms: int) -> None:
    """Raises DELEGATION_TOKEN_EXPIRED."""
    if token.is_over(now_ms):
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_owner(token: DelegationToken, principal: str) -> None:
    """Raises DELEGATION_TOKEN_OWNER_MISMATCH where the principal neither owns the token nor may renew it."""
    if not token.may_be_renewed_by(principal):
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _later(now_ms: int, longest_ms: int, asked_ms: int = 0) -> int:
    return min(TIME_MS_MAX, now_ms + (min(longest_ms, asked_ms) if asked_ms > 0 else longest_ms))
