"""Delegation tokens in a cluster that fails: they are made and ended, and a client logs in by them (KIP-48).

| rule | broken where |
|---|---|
| TokensEnd | a node lets in by a token that is over by its clock, another secret, or after healing a removed token |
| TokensAreKept | after healing a node does not let in by a token that holds |

Nodes log in as a super user, so the client makes its tokens as one of them, for its user. What was not answered may
have happened, also later: such a token is tried no more.
"""

from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from kavka_broker.core.authentication.inter_node import LoginSettings
from kavka_broker.core.authentication.login import PLAIN
from kavka_broker.core.authentication.scram import SHA_256
from kavka_broker.core.authentication.scram_client import Client as ScramClient
from kavka_broker.core.authentication.scram_client import LoginError
from kavka_broker.net.outbound import Outbound
from kavka_broker.net.outbound_login import NONCE_BYTES, Ask, Introduction
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kavka_broker.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kavka_broker.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kavka_broker.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.node import INTERNAL_PORT
from tests.sim.renewals import USER

NODE: Final = LoginSettings(PLAIN, "node", "of nodes")
SHORT_MS, LONG_MS = 2_000, 1_000_000_000
SETTINGS: Final = {
    "delegation.token.secret.key": "of all nodes",
    "delegation.token.expiry.time.ms": str(LONG_MS),
    "delegation.token.max.lifetime.ms": str(LONG_MS),
    "delegation.token.expiry.check.interval.ms": "3000",
}
OTHER_SECRET: Final = b"x" * 64
TRIED_MAX: Final = 3  # tokens of each kind that are tried at the end


R = TypeVar("R", bound=Message)


@dataclass(slots=True)
class Token:
    """A token that was answered, and what was asked of it since."""

    token_id: str
    secret: bytes
    max_ms: int
    is_short: bool
    is_asked_to_end: bool = False
    is_removed: bool = False


class Bearing(ScramClient):
    """A login by a token."""

    __slots__ = ()

    def first(self) -> bytes:
        self._bare += ",tokenauth=true"
        return ScramClient.first(self)


class Showing(Introduction):
    """Logs in by a token, and goes on whatever came of it: the node alone has to keep it out."""

    async def log_in(self, ask: Ask) -> int:
        assert self.login is not None
        bearing = Bearing(SHA_256, self.login.user, self.login.password, self.random_bytes(NONCE_BYTES).hex())
        with suppress(LoginError):
            await ask(SaslHandshakeRequest(SHA_256.name), SaslHandshakeResponse)
            challenge = await ask(SaslAuthenticateRequest(bearing.first()), SaslAuthenticateResponse)
            proof = bearing.proof(bytes(challenge.auth_bytes))
            await ask(SaslAuthenticateRequest(proof), SaslAuthenticateResponse)
        return 0


class Bearer(Client):
    """Makes tokens, ends some of them, and logs in by those that hold and by those that do not."""

    is_stopping = False
    clock_of: Callable[[str], int]  # the time of a node, by its host

    async def run(self) -> None:
        self.let_in = self.refused = self.removed = 0
        self.nonces = self.stream("nonces")
        self.wrongly: list[str] = []
        self.tokens: list[Token] = []
        while not self.is_stopping:
            await self.rest(0.2, 1.0)
            host, _ = self.random.choice(self._addresses)
            choice = self.random.random()
            if choice < 0.3 or not self.tokens:
                await self._make(host)
            elif choice < 0.4:
                await self._end(host, self.random.choice(self.tokens))
            else:
                await self._try(host, self.random.choice(self.tokens[-TRIED_MAX:]))

    async def _make(self, host: str) -> None:
        is_short = self.random.random() < 0.5
        renewers = [CreatableRenewers("User", NODE.user)]
        request = CreateDelegationTokenRequest("User", USER, renewers, SHORT_MS if is_short else -1)
        answer = await self._ask_as_node(host, request, CreateDelegationTokenResponse)
        if answer is not None and not answer.error_code:
            secret = bytes(answer.hmac)
            self.tokens.append(Token(answer.token_id, secret, answer.max_timestamp_ms, is_short))

    async def _end(self, host: str, token: Token) -> None:
        if token.is_short or token.is_asked_to_end:
            return
        token.is_asked_to_end = True
        answer = await self._ask_as_node(
            host, ExpireDelegationTokenRequest(token.secret, -1), ExpireDelegationTokenResponse
        )
        token.is_removed = answer is not None and not answer.error_code
        self.removed += token.is_removed

    async def _try(self, host: str, token: Token) -> None:
        """Log in by a token that holds, one that is over by the clock of the node, or another secret."""
        is_guess = self.random.random() < 0.2
        was_over = token.max_ms < self.clock_of(host)
        is_let_in = await self.is_let_in(host, token, OTHER_SECRET if is_guess else token.secret)
        is_over = was_over and token.max_ms < self.clock_of(host)
        if is_let_in and (is_guess or is_over):
            what = "another secret" if is_guess else "a token that is over"
            self.wrongly.append(f"TokensEnd: {host} let {self.name} in by {what} at {self.loop.time():.3f}")
        self.let_in += is_let_in
        self.refused += not is_let_in and (is_guess or is_over)

    async def is_let_in(self, host: str, token: Token, secret: bytes) -> bool:
        """Whether a node serves the client once it has shown a token."""
        login = LoginSettings(SHA_256.name, token.token_id, b64encode(secret).decode())
        showing = Showing(login=login, random_bytes=self.nonces.randbytes)
        return await self._ask(host, showing, MetadataRequest([]), MetadataResponse) is not None

    async def _ask_as_node(self, host: str, request: Message, response: type[R]) -> R | None:
        return await self._ask(host, Introduction(login=NODE, random_bytes=self.nonces.randbytes), request, response)

    async def _ask(self, host: str, introduction: Introduction, request: Message, response: type[R]) -> R | None:
        """The answer of a node; None where it has none for this client, or is cut off."""
        peer = Outbound(introduction).to(host, INTERNAL_PORT, client_id=self.name)
        try:
            return await peer.ask(request, response, timeout_ms=ANSWER_MS)
        except Unreachable:
            return None
        finally:
            peer.close()

    async def judge(self, host: str) -> list[str]:
        """What one node takes that it should not, or refuses, after healing."""
        now_ms = self.clock_of(host)
        kept = [token for token in self.tokens if not token.is_asked_to_end and not token.is_short]
        over = [token for token in self.tokens if token.is_removed or token.max_ms < now_ms]
        lost = [token for token in kept[-TRIED_MAX:] if not await self.is_let_in(host, token, token.secret)]
        taken = [token for token in over[-TRIED_MAX:] if await self.is_let_in(host, token, token.secret)]
        return [
            *(f"TokensAreKept: {host} does not let in by {token.token_id}" for token in lost),
            *(f"TokensEnd: {host} lets in by {token.token_id}, which is over or was removed" for token in taken),
        ]
