"""DescribeDelegationToken (41): the tokens that a client may see, with their secrets (KIP-48).

- Of these owners, or of all where none are named; no tokens where the list is empty. A token counts as one of its
  owner, of who has asked for it, and of its renewers.
- A client sees those. Others take the right DESCRIBE on the token or DESCRIBE_TOKENS on its owner (KIP-373), which the
  gate asks for.
- Tokens that are over are among them until the controller removes them, which it does each
  `delegation.token.expiry.check.interval.ms`.
- Who may not ask at all: as with CreateDelegationToken.
Versions: flexible from 2; who has asked for a token from 3.
"""

from typing import Final

from kavka_broker.core.authentication.delegation import TokenSecrets
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kavka_broker.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.delegation_tokens import may_ask, parted, requester
from kavka_broker.request.registry import SMALL_BYTES_MAX, api, listing

PER_TURN: Final = 200
"""Tokens that are described in one turn, at 6 us each."""


@api(
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    versions=(1, 3),
    bytes_max=SMALL_BYTES_MAX,
)
@listing
async def describe_delegation_token(
    request: DescribeDelegationTokenRequest, broker: Broker, client: Client
) -> DescribeDelegationTokenResponse:
    if not may_ask(broker, client):
        return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secrets = broker.token_secrets
    if secrets is None:
        return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = request.owners
    principals = None if owners is None else [f"{owner.principal_type}:{owner.principal_name}" for owner in owners]
    answer = DescribeDelegationTokenResponse()
    async for some in broker.slices.in_turns(list(broker.metadata.tokens.by_id.values()), PER_TURN):
        answer.tokens += [described(token, secrets, client.version) for token in some if is_asked(token, principals)]
    return answer


def is_asked(token: DelegationToken, principals: list[str] | None) -> bool:
    """Whether a token is one of these principals, or of any."""
    return principals is None or any(token.concerns(principal) for principal in principals)


def described(token: DelegationToken, secrets: TokenSecrets, version: int) -> DescribedDelegationToken:
    """One token in an answer."""
    return DescribedDelegationToken(
        *parted(token.owner),
        *requester(token.requester, version),
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.token_id,
        secrets.of(token.token_id),
        [DescribedDelegationTokenRenewer(*parted(renewer)) for renewer in token.renewers],
    )
