"""How a simulated broker listens: who comes waits in the system's backlog until the broker takes him.

What the system does is the `Door` of a listening socket: for the one who connects the connection stands at once, and
what he sends waits. Whom the broker takes, and when, its own listener and `ConnectionQuotas` decide; the acceptor asks
them as the one for sockets does: one by one, so many in a turn, and again whenever there may be room.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kavka_broker.net.acceptor import Admission

if TYPE_CHECKING:
    from tests.sim.network import Network, Server, Transport

TAKEN_PER_TURN_MAX = 64


class Door:
    """The connections of a listening socket, from the broker's side: those that wait, and those that it has taken."""

    def __init__(self, network: "Network", server: "Server", knock: Callable[[], None]) -> None:
        self.network = network
        self.server = server
        self.waiting: deque[Transport] = deque()
        self._taken: dict[Transport, None] = {}
        self._knock = knock

    @property
    def port(self) -> int:
        return self.server.sockets[0].getsockname()[1]

    @property
    def held(self) -> int:
        """How many connections the broker has, without those that it is closing."""
        return sum(not transport.is_closing() for transport in self._present())

    def count_of(self, address: str) -> int:
        """How many of them are from this address, with those that it is closing."""
        return sum(transport.get_extra_info("peername")[0] == address for transport in self._present())

    def _present(self) -> Iterable["Transport"]:
        self._taken = {transport: None for transport in self._taken if transport.is_open}
        return self._taken

    def arrived(self, far: "Transport") -> None:
        """A connection stands, and the broker has yet to take it."""
        far.pause_reading()
        self.waiting.append(far)
        far.network.loop.call_soon(self._knock, context=far.context)

    def take(self, protocol: asyncio.BaseProtocol) -> None:
        """Give the broker the one that has waited the longest."""
        far = self.waiting.popleft()
        self._taken[far] = None
        far.begin(lambda: protocol)
        far.resume_reading()

    def close(self) -> None:
        """Refuse new connections, as the system does for waiting ones."""
        while self.waiting:
            far = self.waiting.popleft()
            if far.is_open:
                far.process.on_death.pop(far.turn_away, None)
                far.turn_away()


class LoopAcceptor:
    """Takes connections from a `Door`."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._door: Door
        self._is_watching = False

    async def bind(self, host: str | None, port: int) -> int:
        """Take the address without serving it yet; its port."""
        network: Network = asyncio.get_running_loop().network  # type: ignore[attr-defined] # it is a SimLoop
        server = network.listen(_nobody, host, port, start_serving=False)
        self._door = server.door = Door(network, server, self._take)
        network.doors[server.process.host, self._door.port] = self._door
        return self._door.port

    async def start(self) -> None:
        """Take connections from now on."""
        await self._door.server.start_serving()
        self.look_again()

    def look_again(self) -> None:
        """There may be room again."""
        if not self._is_watching and self._door.server.is_serving and self._admission.has_room:
            self._is_watching = True
            asyncio.get_running_loop().call_soon(self._take)

    def _take(self) -> None:
        """Take a waiting connection, where there is room for it."""
        door = self._door
        for _ in range(TAKEN_PER_TURN_MAX):
            if not door.waiting or not self._is_watching:
                return
            if not self._admission.has_room:
                self._is_watching = False
                door.network.on_waiting(door)
                return
            door.network.on_taking(door)
            door.take(self._admission.admit())
        asyncio.get_running_loop().call_soon(self._take)

    async def close(self) -> None:
        """Stop listening."""
        self._door.server.close()


def _nobody() -> Any:
    raise AssertionError("a connection is made by whoever takes it")
