"""What the APIs of delegation tokens share (KIP-48): who may ask, and which token a secret is of."""

from typing import TYPE_CHECKING, Final

from kavka_broker.core.client_names import ANONYMOUS
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken

if TYPE_CHECKING:
    from kavka_broker.request.broker import Broker, Client

NEVER_MS: Final = -1
"""The time in an answer that has none."""
REQUESTER_FROM: Final = 3
LEARNED_PER_TURN: Final = 500
"""Secrets of tokens that are worked out in one turn: a millisecond."""


def may_ask(broker: "Broker", client: "Client") -> bool:
    """Whether a client may ask for tokens: not one that has logged in by a token, nor one that nobody has proved.

    A broker looks at the connection; to a controller its word counts.
    """
    if client.is_by_token:
        return False
    if not client.has_own_connection:
        return True
    protocol = broker.config.listeners.protocols[client.listener]
    return protocol != "PLAINTEXT" and not (protocol == "SSL" and client.user == ANONYMOUS)


def parted(principal: str) -> tuple[str, str]:
    """The type and the name of a principal."""
    kind, _, name = principal.partition(":")
    return kind, name


def requester(principal: str, version: int) -> tuple[str, str]:
    """The type and the name of who has asked for a token, as a version of an answer tells them."""
    return parted(principal) if version >= REQUESTER_FROM else ("", "")


def known(secret: bytes, broker: "Broker") -> DelegationToken | None:
    """The token that has this secret, among those whose secrets this node has worked out."""
    token_id = None if broker.token_secrets is None else broker.token_secrets.id_of(bytes(secret))
    return None if token_id is None else broker.metadata.tokens.of(token_id)


async def find(secret: bytes, broker: "Broker") -> DelegationToken | None:
    """The token that has this secret, over or not; None where there is none, or this node knows no key."""
    secrets, tokens = broker.token_secrets, broker.metadata.tokens
    if secrets is not None and secrets.id_of(bytes(secret)) is None:
        async for some in broker.slices.in_turns(secrets.to_learn(tokens.by_id), LEARNED_PER_TURN):
            secrets.learn(some)
    return known(secret, broker)
