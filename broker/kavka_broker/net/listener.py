"""A listening socket and the connections that came through it, within named limits.

Limits are Kafka's: `socket.request.max.bytes`, `max.connections`, `max.connections.per.ip` with overrides, and
`connections.max.idle.ms`. One sweep a while looks after all idle connections, so ten thousand of them cost memory and
no timers. Idle is, as in Apache Kafka, whose bytes neither come nor go, whatever it waits for: a peer that is
throttled, reads nothing or waits for an answer may be gone, and nobody would hear of it.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kavka_broker.api.dispatch import Dispatcher
from kavka_broker.logs import get
from kavka_broker.net.connection import Connection
from kavka_broker.net.request_memory import RequestMemory
from kavka_broker.seams import Clock
from kavka_broker.timers import Timer, Timers

log = get("net")

SWEEP_MS_MAX = 30_000
BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Limits:
    """What one listener allows."""

    request_bytes_max: int = 100 * 1024 * 1024
    connections_max: int = 2**31 - 1
    connections_per_ip_max: int = 2**31 - 1
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    idle_ms_max: int = 600_000
    memory: RequestMemory = field(default_factory=RequestMemory)  # which other listeners may share

    def of(self, address: str) -> int:
        """Connections that this address may have."""
        return self.per_ip_overrides.get(address, self.connections_per_ip_max)


class Listener:
    """Accepts connections for one name of `listeners`. `dispatcher` answers them; it may be given before `serve`."""

    def __init__(self, name: str, dispatcher: Dispatcher | None, limits: Limits, clock: Clock, timers: Timers) -> None:
        self.name = name
        self.dispatcher = dispatcher
        self.limits = limits
        self.clock = clock
        self.timers = timers
        self.connections: dict[Connection, None] = {}  # in the order of arrival, which a set would not keep
        self.received_bytes = 0
        self.accepted_count = 0
        self.refused_count = 0
        self._closed_sent_bytes = 0
        self._per_address: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._sweep: Timer | None = None

    @property
    def sent_bytes(self) -> int:
        return self._closed_sent_bytes + sum(connection.outbox.sent_bytes for connection in self.connections)

    async def bind(self, host: str | None, port: int) -> int:
        """Take the address without serving it yet; the port (`port` 0 takes a free one). Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), host or None, port, backlog=BACKLOG, start_serving=False
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def serve(self) -> None:
        """Accept connections from now on."""
        assert self._server is not None, "bind comes first"
        assert self.dispatcher is not None, "nobody would answer"
        await self._server.start_serving()

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.abort()
        if self._server is not None:
            await self._server.wait_closed()

    def opened(self, connection: Connection) -> None:
        """Count a new connection, or refuse it."""
        self.accepted_count += 1
        self.connections[connection] = None
        address = connection.peer.address
        self._per_address[address] += 1
        if len(self.connections) > self.limits.connections_max:
            connection.close(f"more than max.connections={self.limits.connections_max}")
        elif self._per_address[address] > self.limits.of(address):
            connection.close(f"more than max.connections.per.ip={self.limits.of(address)}")
        elif self._sweep is None:
            self._schedule_sweep()

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._closed_sent_bytes += connection.outbox.sent_bytes
        address = connection.peer.address
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]

    def refused(self, connection: Connection, reason: str) -> None:
        self.refused_count += 1
        log.warning("connection.closed", listener=self.name, client=connection.peer.address, reason=reason)

    def _schedule_sweep(self) -> None:
        self._sweep = self.timers.after(min(SWEEP_MS_MAX, max(1, self.limits.idle_ms_max // 2)), self._look_for_idle)

    def _look_for_idle(self) -> None:
        self._sweep = None
        now = self.clock.monotonic_ms()
        for connection in list(self.connections):
            idle_ms = connection.idle_ms(now)
            if idle_ms > self.limits.idle_ms_max:
                connection.close(f"idle for {idle_ms / 1000:.0f} s (connections.max.idle.ms)")
        if self.connections:
            self._schedule_sweep()
