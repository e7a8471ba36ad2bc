"""RenewDelegationToken (39): move the expiry of a token, named by its secret (KIP-48).

- By at most `delegation.token.expiry.time.ms`, and never beyond the end of its life.
- Its owner and its renewers may: another is DELEGATION_TOKEN_OWNER_MISMATCH. A token that is over is
  DELEGATION_TOKEN_EXPIRED, and a secret of none DELEGATION_TOKEN_NOT_FOUND.
- Who may not ask at all: as with CreateDelegationToken.
Versions: flexible from 2.
"""

from kavka_broker.core.metadata.decide.delegation_tokens import Lifetimes, renew
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kavka_broker.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.delegation_tokens import NEVER_MS, find, may_ask
from kavka_broker.request.registry import BOTH, SMALL_BYTES_MAX, api


def refused(
    request: RenewDelegationTokenRequest, broker: Broker, client: Client
) -> RenewDelegationTokenResponse | None:
    """Answer who may not ask."""
    del request
    if may_ask(broker, client):
        return None
    return RenewDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NEVER_MS)


@api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    versions=(1, 2),
    on=BOTH,
    forwarded=True,
    bytes_max=SMALL_BYTES_MAX,
    refuses=refused,
)
async def renew_delegation_token(
    request: RenewDelegationTokenRequest, broker: Broker, client: Client
) -> RenewDelegationTokenResponse:
    if (no := refused(request, broker, client)) is not None:
        return no
    if broker.token_secrets is None:
        return RenewDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token = await find(request.hmac, broker)
    token_id, lifetimes = None if token is None else token.token_id, Lifetimes.of(broker.config)
    try:
        expires_ms = await broker.active.submit(
            lambda metadata, now_ms: renew(
                metadata.tokens, token_id, client.principal, request.renew_period_ms, lifetimes, now_ms
            )
        )
    except BrokerError as error:
        return RenewDelegationTokenResponse(error.code)
    return RenewDelegationTokenResponse(ErrorCode.NONE, expires_ms)
