"""Connections that nobody uses are closed (`connections.max.idle.ms`).

Idle is, as in Apache Kafka, whose bytes neither come nor go, whatever it waits for: a peer that is throttled, reads
nothing or waits for an answer may be gone, and nobody would hear of it. One sweep a while looks at all connections of a
listener, so ten thousand of them cost memory and no timers.
"""

from collections.abc import Collection

from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.net.connection import Connection

log = get("net")

SWEEP_MS_MAX = 30_000


class IdleConnections:
    """Closes those of `connections`, which are the listener's, that were idle for longer than `idle_ms_max`."""

    def __init__(
        self, listener: str, connections: Collection[Connection], idle_ms_max: int, clock: Clock, timers: Timers
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._idle_ms_max = idle_ms_max
        self._clock = clock
        self._timers = timers
        self._sweep: Timer | None = None

    def watch(self) -> None:
        """Sweep from now on, as long as there are connections."""
        if self._sweep is None:
            self._sweep = self._timers.after(min(SWEEP_MS_MAX, max(1, self._idle_ms_max // 2)), self._look)

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()

    def _look(self) -> None:
        self._sweep = None
        now = self._clock.monotonic_ms()
        for connection in list(self._connections):
            idle_ms = connection.idle_ms(now)
            if idle_ms > self._idle_ms_max:
                self._end(connection, f"idle for {idle_ms / 1000:.0f} s (connections.max.idle.ms)")
        if self._connections:
            self.watch()

    def _end(self, connection: Connection, reason: str) -> None:
        """Close a connection that nobody uses, which is ordinary: it is neither refused nor worth a warning."""
        log.debug("connection.closed", listener=self._listener, client=connection.peer.address, reason=reason)
        connection.abort()
