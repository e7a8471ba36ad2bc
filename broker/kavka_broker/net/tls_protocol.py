"""TLS over asyncio's sockets, where a peer that is refused hears why.

OpenSSL writes an alert when it refuses a version, a cipher or a certificate, or cannot read a record. asyncio drops
what OpenSSL has written last when it aborts the connection. Java's clients take an alert for final. An end without an
alert is a broker that is away to them: they try again until their own timeouts.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import TypeVar

from kavka_broker.net.tls import HANDSHAKE_SECONDS_MAX

P = TypeVar("P", bound=asyncio.BaseProtocol)


class TlsProtocol(SSLProtocol):
    """The TLS of one connection, between the socket and `application`. `is_made` ends with the handshake."""

    _outgoing: ssl.MemoryBIO

    def __init__(
        self, application: asyncio.BaseProtocol, context: ssl.SSLContext, *, server_hostname: str | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        self.is_made: asyncio.Future[None] = loop.create_future()
        super().__init__(
            loop,
            application,
            context,
            self.is_made,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
            ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX,
        )

    def _fatal_error(self, exc: BaseException, message: str = "Fatal error on transport") -> None:
        """Send the alert that OpenSSL has written, and abort the connection.

        The system takes the few bytes at once: a handshake leaves its buffer nearly empty. Otherwise they are dropped.
        """
        if isinstance(exc, ssl.SSLError) and isinstance(self._transport, asyncio.WriteTransport):
            self._transport.write(self._outgoing.read())
        super()._fatal_error(exc, message)

    async def make(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the end of the handshake. Raises OSError, an SSLError among them."""
        assert isinstance(transport, asyncio.WriteTransport)
        try:
            await self.is_made
        except BaseException:
            transport.abort()
            raise


async def connect(made: Callable[[], P], host: str, port: int, context: ssl.SSLContext | None) -> P:
    """Connect to a host, by TLS where there is a context. Raises OSError, and ValueError for what is no host name."""
    loop = asyncio.get_running_loop()
    if context is None:
        return (await loop.create_connection(made, host, port))[1]
    application = made()
    transport, protocol = await loop.create_connection(
        lambda: TlsProtocol(application, context, server_hostname=host), host, port
    )
    await protocol.make(transport)
    return application
