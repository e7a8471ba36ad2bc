"""Gates of delegation tokens: who may make one for somebody else, and whose tokens a client sees (KIP-373)."""

from typing import Any

from kavka_broker.api.a38_create_delegation_token import owner_of, refusal, refused
from kavka_broker.core.authorization.acl_types import Operation, ResourceType
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken
from kavka_broker.dispatch.access.gates import ITEMS_PER_TURN, Access, Outcome
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import Answer, Api


def create(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Let clients have tokens of their own; for another user it takes CREATE_TOKENS on that user."""
    owner = owner_of(request, client)
    if owner == client.principal or access.may(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        return api.handle(request, broker, client)
    if (no := refused(request, broker, client)) is not None:
        return no
    return refusal(request, client, access.refusal(Operation.CREATE_TOKENS, ResourceType.USER, owner).code)


async def describe(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Leave the tokens in the answer that the client may see."""
    answer: Any = await api.handle(request, broker, client)  # type: ignore[misc]
    seen: list[Any] = []
    async for some in broker.slices.in_turns(answer.tokens, ITEMS_PER_TURN):
        seen += [token for token in some if _may_see(broker.metadata.tokens.of(token.token_id), access)]
    answer.tokens = seen
    return answer  # type: ignore[no-any-return]


def _may_see(token: DelegationToken | None, access: Access) -> bool:
    return token is not None and (
        token.concerns(access.principal)
        or access.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or access.may(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )
