"""TLS over asyncio's sockets, where a peer that is refused hears why.

OpenSSL writes an alert when it refuses a version, a cipher or a certificate, or cannot read a record. asyncio drops
what OpenSSL has written last when it aborts the connection. Java's clients take an alert for final. An end without an
alert is a broker that is away to them: they try again until their own timeouts.

asyncio's protocol also stands in reference cycles, with a buffer of 256 KiB, which only a search through all that is
old would find. Here a connection that has ended is freed at once, whether its handshake was finished, refused or
stalled.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Final, TypeVar

from kavka_broker.net.tls import HANDSHAKE_SECONDS_MAX
from kavka_broker.net.transports import free, stream_of

P = TypeVar("P", bound=asyncio.BaseProtocol)

_NO_BUFFER: Final = bytearray()


class TlsProtocol(SSLProtocol):
    """The TLS of one connection, between the socket and `application`. `is_made` ends with the handshake."""

    _outgoing: ssl.MemoryBIO
    _ssl_buffer: bytearray
    _ssl_buffer_view: memoryview
    _app_protocol_get_buffer: Callable[[int], memoryview] | None
    _app_protocol_buffer_updated: Callable[[int], None] | None

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
        if isinstance(exc, ssl.SSLError) and self._transport is not None:
            stream_of(self._transport).write(self._outgoing.read())
        super()._fatal_error(exc, message)

    def _wakeup_waiter(self, exc: BaseException | None = None) -> None:
        """End the wait for the handshake. The frames of a failure hold the failure itself: they are left out."""
        super()._wakeup_waiter(None if exc is None else exc.with_traceback(None))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the application, and break the cycles in which this connection stands."""
        transport = self._transport
        super().connection_lost(exc)
        free(transport)
        self._app_protocol_get_buffer = self._app_protocol_buffer_updated = None
        self._ssl_buffer, self._ssl_buffer_view = _NO_BUFFER, memoryview(_NO_BUFFER)

    def give_up(self) -> None:
        """End the handshake; `make` then ends the connection. A task that is cancelled while a loop makes the transport
        would leave that behind, and uvloop never close it.
        """
        if self._waiter is not None:
            self._waiter.cancel()

    async def make(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the end of the handshake. Raises OSError, an SSLError among them, and CancelledError where it was
        given up.
        """
        try:
            await self.is_made
        except BaseException:
            stream_of(transport).abort()
            raise
        finally:
            del self.is_made  # it holds a failure, which holds this frame


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
