"""A listening socket and the connections that came through it, within named limits.

Limits are Kafka's: `socket.request.max.bytes` and `connections.max.idle.ms`; how many there may be is counted over all
listeners of a role (`ConnectionQuotas`), and what idle means is told in `idle_connections`.

Where a login is asked for it has to be over within `kavka.login.timeout.ms`, a setting that Apache Kafka has not: there
a client that says a little now and then stays without a login for good.
"""

from asyncio import Transport
from collections.abc import Callable

from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.core.client_names import ANONYMOUS
from kavka_broker.dispatch.dispatcher import Dispatcher
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.net.acceptor import Acceptor, Admission, SocketAcceptor
from kavka_broker.net.connection import Connection
from kavka_broker.net.connection_quotas import ConnectionQuotas
from kavka_broker.net.connection_rates import ConnectionRates
from kavka_broker.net.idle_connections import IdleConnections
from kavka_broker.net.limits import Limits
from kavka_broker.net.tls import Tls
from kavka_broker.quotas.sensor import HeldTime

log = get("net")

HELD_MAX = 1_000
"""Connections above the rate of their address that are held until their delay is over; more are closed at once."""


class Listener:
    """Accepts connections for one name of `listeners`. `dispatcher` answers them; it may be given before `serve`."""

    def __init__(
        self,
        name: str,
        dispatcher: Dispatcher | None,
        limits: Limits,
        clock: Clock,
        timers: Timers,
        quotas: ConnectionQuotas | None = None,
        acceptor: Callable[[Admission], Acceptor] = SocketAcceptor,
        sasl: SaslSettings | None = None,
        tls: Tls | None = None,
    ) -> None:
        self.name = name
        self.dispatcher = dispatcher
        self.limits = limits
        self.sasl = sasl
        self.tls = tls
        self.clock = clock
        self.timers = timers
        self.connections: dict[Connection, None] = {}  # in the order of arrival, which a set would not keep
        self.received_bytes = 0
        self.accepted_count = 0
        self.refused_count = 0
        self.authentications = Authentications()
        self._closed_sent_bytes = 0
        self._quotas = quotas or ConnectionQuotas()
        self.acceptor = acceptor(self)
        self._quotas.join(name, self.connections, self.acceptor.look_again)
        self._idle = IdleConnections(name, self.connections, limits.idle_ms_max, clock, timers)
        self._pause: Timer | None = None  # until it may take the next connection
        self.held_max = HELD_MAX
        self._held: dict[Connection, HeldTime] = {}  # those above the rate of their address

    @property
    def rates(self) -> ConnectionRates:
        """Return how fast connections come, to the other listeners of the role too."""
        return self._quotas.rates

    @property
    def sent_bytes(self) -> int:
        return self._closed_sent_bytes + sum(connection.outbox.sent_bytes for connection in self.connections)

    async def bind(self, host: str | None, port: int) -> int:
        """Take the address without serving it yet; the port (`port` 0 takes a free one). Raises OSError."""
        return await self.acceptor.bind(host or None, port)

    async def serve(self) -> None:
        """Accept connections from now on."""
        assert self.dispatcher is not None, "nobody would answer"
        await self.acceptor.start()

    async def close(self) -> None:
        """Stop listening and close every connection."""
        self._idle.close()
        if self._pause is not None:
            self._pause.cancel()
        await self.acceptor.close()
        for connection in list(self.connections):
            connection.abort()

    # --- what the acceptor asks ---------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether one more connection may be made."""
        return self._pause is None and self._quotas.has_room(self.name)

    def admit(self) -> Connection:
        """The protocol of a connection that is made now, which counts from now on."""
        self._quotas.take(self.name)
        delay_ms = self._quotas.rates.take(self.name, int(self.clock.monotonic_ms()))
        if delay_ms and self._pause is None:
            self._pause = self.timers.after(delay_ms, self._end_pause)
        return Connection(self)

    def give_back(self) -> None:
        """A connection that was admitted could not be made."""
        self._quotas.give_back(self.name)

    def _end_pause(self) -> None:
        self._pause = None
        self.acceptor.look_again()

    # --- what a connection asks and tells ---------------------------------------------------------------------------

    def user_of(self, transport: Transport) -> str | None:
        """The user of a connection before it says anything: by its certificate, where clients have one. None where no
        rule is about that.
        """
        return ANONYMOUS if self.tls is None else self.tls.user_of(transport)

    def told_login(self, address: str, user: str | None) -> None:
        """Tell the audit trail of a login by certificate; `user` is None where it failed. Who shows none logs in by
        none.
        """
        audit = None if self.dispatcher is None else self.dispatcher.audit
        if audit is not None and self.tls is not None and self.tls.is_by_certificate and user != ANONYMOUS:
            audit.logged_in(user, address, self.name, "TLS")

    def told_failure(self, address: str) -> None:
        """Tell the audit trail of a login by SASL that was not finished in time."""
        if self.dispatcher is not None and self.dispatcher.audit is not None:
            self.dispatcher.audit.logged_in(None, address, self.name)

    def opened(self, connection: Connection) -> None:
        """Count a new connection, or refuse it."""
        self.accepted_count += 1
        if self.tls is not None and self.sasl is None:
            self.authentications.successful += 1  # its handshake is over
        self.connections[connection] = None
        address = connection.peer.address
        if not self._quotas.admits(connection, address):
            if self.dispatcher is not None and self.dispatcher.audit is not None:
                self.dispatcher.audit.denied(f"User:{ANONYMOUS}", address, "CONNECT", "listener", self.name)
            connection.close(f"more than max.connections.per.ip={self._quotas.bounds.of_address(address)}")
            return
        self._idle.watch()
        if delay_ms := self._quotas.rates.admit(self.name, address, int(self.clock.monotonic_ms())):
            self._hold(connection, address, delay_ms)
            self._tell_held(address, delay_ms)

    def _tell_held(self, address: str, delay_ms: int) -> None:
        use, limited = None if self.dispatcher is None else self.dispatcher.use, self._quotas.rates.limit_of(address)
        if use is not None and limited is not None:
            quota = "connection_creation", entity_key(limited[0]), limited[1]
            use.throttled(ANONYMOUS, address, "", quota, delay_ms)

    def _hold(self, connection: Connection, address: str, delay_ms: int) -> None:
        """Hold a connection above the rate of its address for a while, so that the next does not come at once."""
        reason = f"its address is above its connection_creation_rate; it has been held for {delay_ms} ms"
        if len(self._held) >= self.held_max:
            connection.close(f"its address is above its connection_creation_rate, and {self.held_max} are held")
            return
        self._held[connection] = held = self._quotas.rates.held.of(address)
        held.begin(int(self.clock.monotonic_ms()))
        connection.close_after(delay_ms, reason)

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if (held := self._held.pop(connection, None)) is not None:
            held.end(int(self.clock.monotonic_ms()))
        self._closed_sent_bytes += connection.outbox.sent_bytes
        self._quotas.release(self.name, connection, connection.peer.address)

    def refused(self, connection: Connection, reason: str) -> None:
        self.refused_count += 1
        log.warning("connection.closed", listener=self.name, client=connection.peer.address, reason=reason)
