"""CreateDelegationToken (38): make a token by which others log in as its owner (KIP-48).

- The owner is who asks, or somebody else by the right CREATE_TOKENS on that user (KIP-373), which the gate asks for.
- Asked over PLAINTEXT, over SSL without a certificate, or by who has logged in by a token itself:
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without `delegation.token.secret.key`: DELEGATION_TOKEN_AUTH_DISABLED.
- An owner or renewer of a type other than User: INVALID_PRINCIPAL_TYPE. One with a name of more than 256 characters,
  and a request of more than 16 KiB: INVALID_REQUEST, where Apache Kafka makes a token.
- A cluster has at most 50,000 tokens, then POLICY_VIOLATION.
- Answered when it is committed; a broker lets in by it as soon as its image has it. The secret is in the answer, and
  in no record, log line or metric.
Versions: flexible from 2; the owner and who has asked from 3.
"""

from kavka_broker.core.metadata.decide.delegation_tokens import Lifetimes, NewToken, create
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kavka_broker.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kavka_broker.protocol.uuids import to_text
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.delegation_tokens import NEVER_MS, may_ask, parted, requester
from kavka_broker.request.registry import BOTH, SMALL_BYTES_MAX, api


def refused(
    request: CreateDelegationTokenRequest, broker: Broker, client: Client
) -> CreateDelegationTokenResponse | None:
    """Answer who may not ask, and who asks for more renewers than a token may have."""
    if not may_ask(broker, client):
        return refusal(request, client, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if client.size_bytes > SMALL_BYTES_MAX:
        return refusal(request, client, ErrorCode.INVALID_REQUEST)
    return None


@api(
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    versions=(1, 3),
    on=BOTH,
    forwarded=True,
    refuses=refused,
)
async def create_delegation_token(
    request: CreateDelegationTokenRequest, broker: Broker, client: Client
) -> CreateDelegationTokenResponse:
    if (no := refused(request, broker, client)) is not None:
        return no
    secrets = broker.token_secrets
    if secrets is None:
        return refusal(request, client, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    renewers = [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers]
    lifetimes = Lifetimes.of(broker.config)
    try:
        controller = broker.active
        token_id = to_text(controller.new_uuid())
        wanted = NewToken(token_id, owner_of(request, client), client.principal, renewers, request.max_lifetime_ms)
        token = await controller.submit(lambda metadata, now_ms: create(metadata.tokens, wanted, lifetimes, now_ms))
    except BrokerError as error:
        return refusal(request, client, error.code)
    return made(token, secrets.of(token.token_id), client.version)


def owner_of(request: CreateDelegationTokenRequest, client: Client) -> str:
    """The owner that is asked for."""
    if not request.owner_principal_name:
        return client.principal
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def made(token: DelegationToken, secret: bytes, version: int) -> CreateDelegationTokenResponse:
    """The answer with a token."""
    return CreateDelegationTokenResponse(
        ErrorCode.NONE,
        *parted(token.owner),
        *requester(token.requester, version),
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.token_id,
        secret,
    )


def refusal(request: CreateDelegationTokenRequest, client: Client, code: ErrorCode) -> CreateDelegationTokenResponse:
    """The answer without a token."""
    owner, asks = parted(owner_of(request, client)), requester(client.principal, client.version)
    return CreateDelegationTokenResponse(code, *owner, *asks, NEVER_MS, NEVER_MS, NEVER_MS, "", b"")
