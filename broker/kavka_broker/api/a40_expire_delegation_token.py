"""ExpireDelegationToken (40): have a token, named by its secret, expire after a while, or remove it (KIP-48).

- A negative period removes it, also when it is over already: a broker lets nobody in by it once its image has heard
  of that. Who has logged in by it stays until the login ends.
- Otherwise its expiry moves there, but not beyond the end of its life.
- Refused like RenewDelegationToken; who may not end a token hears that first.
Versions: flexible from 2.
"""

from kavka_broker.core.metadata.decide.delegation_tokens import expire
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kavka_broker.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.delegation_tokens import NEVER_MS, find, may_ask
from kavka_broker.request.registry import BOTH, SMALL_BYTES_MAX, api


def refused(
    request: ExpireDelegationTokenRequest, broker: Broker, client: Client
) -> ExpireDelegationTokenResponse | None:
    """Answer who may not ask."""
    del request
    if may_ask(broker, client):
        return None
    return ExpireDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NEVER_MS)


@api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    versions=(1, 2),
    on=BOTH,
    forwarded=True,
    bytes_max=SMALL_BYTES_MAX,
    refuses=refused,
)
async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, broker: Broker, client: Client
) -> ExpireDelegationTokenResponse:
    if (no := refused(request, broker, client)) is not None:
        return no
    if broker.token_secrets is None:
        return ExpireDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token = await find(request.hmac, broker)
    token_id = None if token is None else token.token_id
    try:
        expires_ms = await broker.active.submit(
            lambda metadata, now_ms: expire(
                metadata.tokens, token_id, client.principal, request.expiry_time_period_ms, now_ms
            )
        )
    except BrokerError as error:
        return ExpireDelegationTokenResponse(error.code)
    return ExpireDelegationTokenResponse(ErrorCode.NONE, expires_ms)
