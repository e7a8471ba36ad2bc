"""Takes connections from the kernel, one by one and only as long as the listener has room for them.

asyncio's own server takes whatever waits, hundreds in a turn, and cannot be told to let them wait. This one looks
before each; where there is no room it stops watching its sockets, and who comes stays in the kernel's backlog. Taking
connections is work for the loop as requests are: a quantum at a time, in turn with the clients (`turns`).
"""

import asyncio
import gc
import socket
from contextlib import suppress
from ssl import SSLError
from typing import Final, Protocol

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.logs import get
from kavka_broker.loop.turns import CONNECTION_NS, Flow
from kavka_broker.net.limits import Limits
from kavka_broker.net.tls import Tls
from kavka_broker.net.tls_protocol import TlsProtocol

log = get("net")

BACKLOG: Final = 512
COLLECT_AFTER: Final = 50
"""Connections after which garbage is searched for among what is young. Python counts objects made less objects freed:
where as many connections go as come it looks seldom, and then at all that came since, 20 ms long.
"""
HANDSHAKES_MAX: Final = 1_000
"""TLS handshakes at a time; when there are more the oldest is given up."""
KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds of silence before the kernel asks a peer whether it is there, seconds between questions, and how many stay
without an answer before the connection ends. Without them the idle connections of a host that has lost its power
count until `connections.max.idle.ms`, also for `max.connections.per.ip`. Where an answer is on its way the kernel does
not ask, and sends it again for some 15 minutes. Apache Kafka has it ask too, after the two hours of the system.
"""
RETRY_SECONDS: Final = 1.0
"""After an error of accept(2) that is not the peer's: most likely there are no more descriptors."""


class Admission(Protocol):
    """The listener, which decides on connections."""

    name: str
    limits: Limits
    tls: Tls | None
    authentications: Authentications

    @property
    def has_room(self) -> bool:
        """Whether one more connection may be made."""

    def told_login(self, address: str, user: str | None) -> None:
        """Tell the audit trail of a login by certificate; `user` is None where it failed."""

    def admit(self) -> asyncio.BaseProtocol:
        """Return the protocol of a connection that is made now, which counts from now on."""

    def give_back(self) -> None:
        """Give back the place of an admitted connection that could not be made."""


class Acceptor(Protocol):
    """The sockets of a listener, or what a simulation has for them."""

    async def bind(self, host: str | None, port: int) -> int:
        """Take the address without serving it yet; returns the port (`port` 0 takes a free one). Raises OSError."""

    async def start(self) -> None:
        """Take connections from now on."""

    def look_again(self) -> None:
        """Look for waiting connections: there may be room again."""

    async def close(self) -> None:
        """Stop listening."""


class SocketAcceptor:
    """Listens on real sockets."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._sockets: list[socket.socket] = []
        self._server: asyncio.Server | None = None
        self.making: dict[asyncio.Task[None], TlsProtocol | None] = {}
        self._given_up: set[asyncio.Task[None]] = set()  # until they have ended
        self._is_watching = False
        self._is_started = False
        self.taken_count = 0
        self.retry_seconds = RETRY_SECONDS
        self._retry: asyncio.TimerHandle | None = None
        self._turns = admission.limits.turns
        self._flow: Flow | None = None  # of the connections that are yet to be taken

    async def bind(self, host: str | None, port: int) -> int:
        """Take the address without serving it yet; returns the port (`port` 0 takes a free one). Raises OSError."""
        # asyncio resolves and binds; its server is never started, and holds the sockets.
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        self._sockets = [listening.dup() for listening in self._server.sockets]
        return int(self._sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Take connections from now on."""
        for listening in self._sockets:
            listening.setblocking(False)
            listening.listen(BACKLOG)
        self._is_started = True
        self._flow = self._turns.join_accepting(self._admission.name)
        self.look_again()

    def look_again(self) -> None:
        """Look for waiting connections: there may be room again."""
        if self._is_started and not self._is_watching and self._retry is None and self._admission.has_room:
            self._is_watching = True
            for listening in self._sockets:
                asyncio.get_running_loop().add_reader(listening, self._take_from, listening)

    def _pause(self) -> None:
        if self._is_watching:
            self._is_watching = False
            for listening in self._sockets:
                asyncio.get_running_loop().remove_reader(listening)

    def _take_from(self, listening: socket.socket) -> None:
        """Take waiting connections, now or in the turn of those who connect."""
        assert self._flow is not None
        if self._turns.may_begin(self._flow):
            self._take_some(self._flow, listening)
        else:
            self._pause()
            self._turns.wait(self._flow, self._take_turn)

    def _take_turn(self) -> bool:
        assert self._flow is not None
        for listening in self._sockets:
            self._take_some(self._flow, listening)
        self.look_again()
        return True

    def _take_some(self, flow: Flow, listening: socket.socket) -> None:
        """Take what waits, for a quantum at most. The loop tells of the rest again in its next turn."""
        began_ns, made_ns = self._turns.now_ns(), 0
        while self._take(listening):
            made_ns += CONNECTION_NS
            if self._turns.now_ns() - began_ns + made_ns >= self._turns.quantum_ns:
                break
        self._turns.charge(flow, self._turns.now_ns() - began_ns + made_ns)

    def _take(self, listening: socket.socket) -> bool:
        """Take a connection; returns whether there may be another."""
        if not self._admission.has_room:
            self._pause()
            return False
        try:
            accepted, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as problem:
            self._wait_a_moment(problem)
            return False
        self._make(accepted)
        self.taken_count += 1
        if self.taken_count % COLLECT_AFTER == 0:
            gc.collect(1)
        return True

    def _make(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        keep_alive(accepted)
        connection, tls = self._admission.admit(), self._admission.tls
        handshake = None if tls is None else TlsProtocol(connection, tls.context)
        work = self._connect(accepted, connection, handshake)
        task = asyncio.get_running_loop().create_task(work, name="accept a connection")
        self.making[task] = handshake
        if len(self.making) > HANDSHAKES_MAX:
            self.give_up_oldest()
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self.making.pop(task, None)
        self._given_up.discard(task)

    def give_up_oldest(self) -> None:
        """Give up the handshake that has begun first, which most likely stalls. It counts no more: many connections may
        be taken before its task has ended, and each is to give up another one.
        """
        oldest = next(iter(self.making))
        handshake = self.making[oldest]
        if handshake is not None:
            del self.making[oldest]
            self._given_up.add(oldest)
            handshake.give_up()

    async def _connect(
        self, accepted: socket.socket, connection: asyncio.BaseProtocol, handshake: TlsProtocol | None
    ) -> None:
        loop, address = asyncio.get_running_loop(), _address_of(accepted)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: handshake or connection, accepted)
            if handshake is not None:
                await handshake.make(transport)
        except (OSError, asyncio.CancelledError) as problem:
            accepted.close()
            self._admission.give_back()
            if isinstance(problem, SSLError):
                self._admission.authentications.failed += 1
                self._admission.told_login(address, None)
            log.warning("connection.not_made", listener=self._admission.name, reason=str(problem) or "others came")

    def _wait_a_moment(self, problem: OSError) -> None:
        log.error("connection.not_accepted", reason=str(problem))
        self._pause()
        self._retry = asyncio.get_running_loop().call_later(self.retry_seconds, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self.look_again()

    async def close(self) -> None:
        """Stop listening."""
        self._pause()
        self._is_started = False
        if self._flow is not None:
            self._turns.forget(self._flow, self._take_turn)
            self._turns.leave(self._flow)
            self._flow = None
        if self._retry is not None:
            self._retry.cancel()
        for listening in self._sockets:
            listening.close()
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*self.making, *self._given_up, return_exceptions=True)


def keep_alive(accepted: socket.socket) -> None:
    """Have the kernel find out when the peer's host is away. A peer that has left already is found by the next read."""
    with suppress(OSError):
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):  # macOS lacks some
                accepted.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _address_of(accepted: socket.socket) -> str:
    """Return the address of the peer; empty where it has left already."""
    try:
        return str(accepted.getpeername()[0])
    except (OSError, IndexError):
        return ""
