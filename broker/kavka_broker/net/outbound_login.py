"""How this node makes itself known on a connection that it has opened: TLS, and a login where it is asked for one.

The other side's certificate is checked before anything is sent, and with SCRAM it has to prove that it knows the user.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Final, Protocol, TypeVar

from kavka_broker.core.authentication.inter_node import LinkSettings, LoginSettings
from kavka_broker.core.authentication.login import PLAIN
from kavka_broker.core.authentication.scram import MECHANISMS
from kavka_broker.core.authentication.scram_client import Client, LoginError
from kavka_broker.core.authentication.tls import ClientTlsSettings
from kavka_broker.net.tls import VERSIONS, load_certificates, load_key
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

R = TypeVar("R", bound=Message)

NONCE_BYTES: Final = 24


class Ask(Protocol):
    """Sends a request over the connection that is to be known."""

    def __call__(self, request: Message, response: type[R], /) -> Awaitable[R]: ...


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a node does on each connection to one kind of listener, before it asks anything."""

    context: ssl.SSLContext | None = None
    login: LoginSettings | None = field(default=None, repr=False)
    random_bytes: Callable[[int], bytes] = token_bytes

    @classmethod
    def of(cls, settings: LinkSettings) -> "Introduction":
        """From the settings of a link. Raises TlsError."""
        return cls(None if settings.tls is None else client_context(settings.tls), settings.login)

    @property
    def is_needed(self) -> bool:
        """Whether the listener asks who this node is, or shows who it is itself."""
        return self.context is not None or self.login is not None

    async def log_in(self, ask: Ask) -> int:
        """Log in where the listener asks for it; returns for how many milliseconds that holds, 0 for as long as the
        connection. Raises LoginError, Unreachable.
        """
        if self.login is None:
            return 0
        mechanism = self.login.mechanism
        answer = await ask(SaslHandshakeRequest(mechanism), SaslHandshakeResponse)
        if answer.error_code != ErrorCode.NONE:
            raise LoginError(f"it does not serve {mechanism}, but {', '.join(answer.mechanisms)}")
        if mechanism == PLAIN:
            token = f"\0{self.login.user}\0{self.login.password}"
            return (await _proved(ask, token.encode())).session_lifetime_ms
        client = Client(
            MECHANISMS[mechanism], self.login.user, self.login.password, self.random_bytes(NONCE_BYTES).hex()
        )
        challenge = bytes((await _proved(ask, client.first())).auth_bytes)
        told = await _proved(ask, await asyncio.to_thread(client.proof, challenge))
        client.check(bytes(told.auth_bytes))
        return told.session_lifetime_ms


async def _proved(ask: Ask, token: bytes) -> SaslAuthenticateResponse:
    """The answer to a token. Raises LoginError where it was refused."""
    answer = await ask(SaslAuthenticateRequest(token), SaslAuthenticateResponse)
    if answer.error_code != ErrorCode.NONE:
        raise LoginError(answer.error_message or ErrorCode(answer.error_code).name)
    return answer


def client_context(settings: ClientTlsSettings) -> ssl.SSLContext:
    """The context of connections to other nodes. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = min(VERSIONS[name] for name in settings.protocols)
    context.maximum_version = max(VERSIONS[name] for name in settings.protocols)
    context.check_hostname = settings.checks_names
    if settings.truststore or settings.trusted:
        load_certificates(context, settings.truststore, settings.trusted)
    else:
        context.load_default_certs()
    if settings.keystore is not None:
        load_key(context, settings.keystore, settings.key_password)
    return context
