"""Crowds: more connections than the brokers take, to a listener beside which they have one of their own.

Strangers connect, say nothing, and leave after a while; many come from one address. What must never be:

| invariant | meaning |
|---|---|
| BoundIsKept | a broker takes somebody where it has `max.connections` already, or `max.connections` of the listener |
| NobodyStarves | somebody waits though there is room; on the listener of the brokers there always is |

and NobodyIsTurnedAway, as ever: for `max.connections.per.ip` only those are closed who are more.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

from kavka_broker.net.connection_quotas import ConnectionBounds
from kavka_broker.runtime.connection_limits import bounds_of
from tests.sim.accepting import Door
from tests.sim.clients import Client
from tests.sim.history import History
from tests.sim.loop import Process, SimLoop
from tests.sim.node import CLIENT_PORT, CONTROLLER, CONTROLLER_PORT, INTERNAL_PORT, Node
from tests.sim.workloads import Simulation, Workload

CONNECTIONS_MAX: Final = "max.connections"
LISTENER_MAX: Final = "listener.name.plaintext.max.connections"
PER_IP_MAX: Final = "max.connections.per.ip"
STRANGERS_PER_NODE: Final = 25
BOUND: Final = "24"  # twice as many as all other clients hold
UNBOUND: Final = str(2**31 - 1)
HOSTS: Final = ("crowd", "few")
STAY_SECONDS: Final = (0.05, 0.6)
LOOK_SECONDS: Final = 0.25
WAIT_SECONDS_MAX: Final = 2.0


class Stranger(Client):
    """Connects to a node that is drawn, stays a while, and leaves."""

    is_stopping = False

    async def run(self) -> None:
        while not self.is_stopping:
            host, port = self.random.choice(self._addresses)
            try:
                async with asyncio.timeout(5.0):
                    transport, _ = await self.loop.create_connection(asyncio.Protocol, host, port)
            except OSError:
                await asyncio.sleep(0.2)
                continue
            await asyncio.sleep(self.random.uniform(*STAY_SECONDS))
            transport.close()
            await asyncio.sleep(self.random.uniform(0.01, 0.5))


class Guard(Client):
    """Looks now and then whether a connection waits that need not."""

    is_stopping = False

    def __init__(
        self, name: str, loop: SimLoop, addresses: Sequence[tuple[str, int]], history: History, look: Callable[[], None]
    ) -> None:
        super().__init__(name, loop, addresses, history)
        self._look = look

    async def run(self) -> None:
        while not self.is_stopping:
            await asyncio.sleep(LOOK_SECONDS)
            self._look()


class Crowds(Workload):
    """Strangers, and a guard."""

    share = 0.15

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {random.choice((CONNECTIONS_MAX, LISTENER_MAX)): BOUND, PER_IP_MAX: random.choice(("10", UNBOUND))}

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self._waiting_since: dict[Door, float] = {}
        self._waited = self._turned_away = self._gave_way = 0
        simulation.network.on_taking, simulation.network.on_waiting = self._taking, self._waits
        simulation.events.listeners["connection.closed"].append(self._closed)

    def clients(self) -> Iterable[Client]:
        return [
            *map(self._stranger, range(STRANGERS_PER_NODE * self.shape.nodes)),
            self.as_client(Guard, "guard", self.look),
        ]

    def _stranger(self, number: int) -> Stranger:
        stranger = self.as_client(Stranger, f"stranger{number}")
        stranger.process.host = HOSTS[0 if number % 4 else 1]
        return stranger

    def _taking(self, door: Door) -> None:
        if door.port == CLIENT_PORT and not self._has_room(door):
            process = door.server.process
            self.simulation.fail(f"BoundIsKept: {process} takes one more, and has {self._held(process)} already")

    def _waits(self, door: Door) -> None:
        if door.port == INTERNAL_PORT:
            self.simulation.fail(f"NobodyStarves: {door.server.process} lets a broker wait")

    def _bounds(self, process: Process) -> ConnectionBounds:
        node: Node = next(other for other in self.simulation.nodes if other.host == process.host)
        return bounds_of(node.config, {})

    def _doors(self, process: Process) -> dict[int, Door]:
        """Doors of this process, except that of the controller."""
        doors = self.simulation.network.doors
        found = {port: doors.get((process.host, port)) for port in (CLIENT_PORT, INTERNAL_PORT)}
        return {port: door for port, door in found.items() if door is not None and door.server.process is process}

    def _controllers_door(self, process: Process) -> Door:
        """The door that controllers count apart from those of the brokers."""
        door: Door = self.simulation.network.doors[process.host, CONTROLLER_PORT]
        return door

    def _held(self, process: Process) -> dict[int, int]:
        return {port: door.held for port, door in self._doors(process).items()}

    def look(self) -> None:
        """Look which connections wait, and since when there is room for them."""
        now, before = self.loop.time(), self._waiting_since
        self._waiting_since = {}
        for node in self.simulation.nodes:
            for door in self._doors(node.process).values() if node.is_serving and not node.process.is_busy else ():
                self._waited += bool(door.waiting)
                if door.waiting and self._has_room(door):
                    since = self._waiting_since[door] = before.get(door, now)
                    if now - since > WAIT_SECONDS_MAX:
                        self.simulation.fail(f"NobodyStarves: {node.process} has room at {door.port}, and takes nobody")

    def _has_room(self, door: Door) -> bool:
        bounds, held = self._bounds(door.server.process), self._held(door.server.process)
        is_below = held[CLIENT_PORT] < bounds.of_listener("PLAINTEXT") and sum(held.values()) < bounds.connections_max
        return door.port == INTERNAL_PORT or is_below

    def _closed(self, process: str, fields: Mapping[str, Any]) -> None:
        if str(fields["reason"]).startswith(f"more than {PER_IP_MAX}"):
            self._turned_away += 1
            self._check_turned_away(process, fields["listener"], fields["client"])
        elif str(fields["reason"]).startswith(f"more than {CONNECTIONS_MAX}"):
            self._gave_way += 1

    def _check_turned_away(self, process: str, listener: str, address: str) -> None:
        there = next(node.process for node in self.simulation.nodes if str(node.process) == process)
        doors = self._doors(there).values() if listener != CONTROLLER else [self._controllers_door(there)]
        count = sum(door.count_of(address) for door in doors)
        if count <= self._bounds(there).of_address(address):
            self.simulation.fail(f"NobodyIsTurnedAway: {process} has closed {address}, which has {count}")

    async def judge(self) -> list[str]:
        self.reached(waited_for_room=self._waited, strangers_refused=self._turned_away, gave_way=self._gave_way)
        return []
