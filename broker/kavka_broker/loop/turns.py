"""Turns on the loop: whose request is begun, and whose slice is done, when more want the loop than it has time for.

While the loop keeps up nobody waits: a connection begins its requests in the callback that received them. Once a
quantum has gone by, in however many callbacks, all further ones are put into the fair queue (`core/fair_queueing`),
and so is a connection that has had a quantum by itself. From then on a turn of the loop serves what is next in the
queue for a quantum and then reads what has arrived; who may go before all that waits is served as it is read. A slice
of long work is such a turn, too. Where the loop has done something else for longer, as opening logs, the queue is
served for as long as that took: clients have at least half of the loop.

A connection takes its first turn among the newcomers of its address and listener, unless its client has others. That
turn is charged to both: a client that connects for each request has a share of what newcomers get, and no more.
Connections are taken from the kernel in turns as well.

What a client has had is kept under its name, for the metrics, while there is room. A client without connections makes
room for another that comes, and is counted among the others from then on: their sum never falls.

Time is measured: reading, the handler, sending the answer, the steps of a handler that waits. What goes on behind that
has a price: a nanosecond for each byte in or out, `CONNECTION_NS` for each connection.
"""

import asyncio
from collections.abc import Callable
from sys import getsizeof
from typing import Final

from kavka_broker.core.fair_queueing import CLIENT_WEIGHT, PEER_WEIGHT, QUANTUM_NS, FairQueue
from kavka_broker.core.fair_queueing import Flow as CoreFlow

__all__ = ["PEER_WEIGHT", "QUANTUM_NS", "Flow", "Turns"]

NS_PER_BYTE: Final = 1
CONNECTION_NS: Final = 20_000
"""What asyncio does to make a connection, and as much again to end it."""
SERVED_NS_MAX: Final = 5 * QUANTUM_NS
TURNS_PER_CALL_MAX: Final = 64
CLIENTS_NAMED_MAX: Final = 500
NAMES_BYTES_MAX: Final = 512 * 1024
"""What the names of those clients may take."""
OTHER: Final = ("__other__", "__other__")
NEWCOMERS: Final = ("__new__", "__new__")
OWN: Final = ("", "")

Waiter = Callable[[], bool]
"""Called in its turn; returns whether it has had it. False where its work is done in the turn of the loop after it."""
Flow = CoreFlow[Waiter]


class Spent:
    """Time on the loop of one client, and time for which its connections and its slices have waited for others."""

    __slots__ = ("loop_ns", "waited_ns")

    def __init__(self) -> None:
        self.loop_ns = self.waited_ns = 0


class Turns:
    """The turns of one loop. `now_ns` measures work."""

    def __init__(self, now_ns: Callable[[], int] = lambda: 0) -> None:
        self.now_ns = now_ns
        self.spent: dict[tuple[str, str], Spent] = {}
        self._names_bytes = 0  # of the names in it
        self._gone: dict[tuple[str, str], None] = {}  # those in it that have left, the first ones first
        self._queue: FairQueue[Waiter] = FairQueue()
        self._since_ns: dict[Waiter, int] = {}  # when those that wait began to
        self._spent_ns = 0  # since the last turn of the queue
        self._rest_ns = 0  # the time at which that ended, without what clients have had since
        self._has_rested = True  # since that time the loop may have had nothing to do
        self.is_armed = False
        self._is_granted = False  # the loop belongs to a slice, until that is over
        self.own = self._queue.join(*OWN, PEER_WEIGHT)  # of work that is for no client

    @property
    def flow_count(self) -> int:
        """The number of clients that are known."""
        return self._queue.flow_count

    @property
    def quantum_ns(self) -> int:
        """The length of a turn now: shorter while a client is there that asks for little."""
        return self._queue.quantum_ns

    def join(self, user: str, client_id: str, *, is_peer: bool = False) -> Flow:
        """Return the flow of a connection's client, until the connection leaves it."""
        self._gone.pop((user, client_id), None)
        return self._queue.join(user, client_id, PEER_WEIGHT if is_peer else CLIENT_WEIGHT)

    def join_newcomers(self, listener: str, address: str) -> Flow:
        """Return the flow of the connections from this address whose clients are not known yet."""
        return self._queue.join(*NEWCOMERS, part=f"{listener} {address}")

    def join_known(self, user: str, client_id: str) -> Flow | None:
        """Return the flow of a client that others have told of before; None where there is none."""
        return self.join(user, client_id) if self._queue.find(user, client_id) is not None else None

    def join_accepting(self, listener: str) -> Flow:
        """Return the flow of the connections that a listener takes from the kernel: other nodes may be among them."""
        return self._queue.join(*NEWCOMERS, PEER_WEIGHT, listener)

    def leave(self, flow: Flow) -> None:
        self._queue.leave(flow)
        if not flow.connections and flow.client in self.spent:
            self._gone[flow.client] = None

    def may_begin(self, flow: Flow) -> bool:
        """Whether the flow may have the loop now, without waiting for a turn."""
        return self._spent_ns < self._queue.quantum_ns and self._queue.goes_first(flow)

    def charge(self, flow: Flow, cost_ns: int) -> None:
        """Count what the flow has had of the loop."""
        self._queue.charge(flow, cost_ns)
        self._spent_of(flow).loop_ns += cost_ns
        self._spent_ns += cost_ns
        if self._spent_ns >= self._queue.quantum_ns:
            self._arm()

    def charge_too(self, flow: Flow, cost_ns: int) -> None:
        """Count what another flow is charged, since it was done in this one's turn."""
        self._queue.charge(flow, cost_ns)
        self._spent_of(flow).loop_ns += cost_ns

    def wait(self, flow: Flow, waiter: Waiter) -> None:
        """Call the waiter in a turn of its flow."""
        self._since_ns.setdefault(waiter, self.now_ns())
        self._queue.wait(flow, waiter)
        self._arm()

    def forget(self, flow: Flow, waiter: Waiter) -> None:
        """The waiter waits no more."""
        self._queue.forget(flow, waiter)
        self._since_ns.pop(waiter, None)

    async def granted(self, flow: Flow) -> None:
        """Wait for a turn of the flow, which lasts until `over`: what is done in it is done at once."""
        granted = asyncio.get_running_loop().create_future()

        def grant() -> bool:
            if granted.done():
                return True  # given up meanwhile
            granted.set_result(None)
            return False

        self.wait(flow, grant)
        try:
            await granted
        except BaseException:
            if granted.done() and not granted.cancelled():
                self.over(flow, 0)  # it had its turn, and does not use it
            self.forget(flow, grant)
            raise

    def over(self, flow: Flow, cost_ns: int) -> None:
        """A turn that was granted is over."""
        self._is_granted = False
        self.charge(flow, cost_ns)
        self._go_on()

    def _go_on(self) -> None:
        """Serve the queue in the next turn of the loop, if anybody waits. Otherwise the loop may rest."""
        if len(self._queue):
            self._arm()
        else:
            self._has_rested = not self.is_armed and not self._is_granted

    def _arm(self) -> None:
        if not self.is_armed and not self._is_granted:
            self.is_armed = True
            if self._has_rested:
                self._has_rested, self._rest_ns = False, self.now_ns() - self._spent_ns
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        """Serve those that are next, until a quantum has gone by."""
        self.is_armed = False
        others_ns = self.now_ns() - self._spent_ns - self._rest_ns
        quantum_ns = self._queue.quantum_ns
        room_ns = max(quantum_ns, min(others_ns, SERVED_NS_MAX))
        self._spent_ns = 0
        try:
            # Who has had its turn waits for the next call, unless there is more room than that.
            for _ in range(len(self._since_ns) if room_ns == quantum_ns else TURNS_PER_CALL_MAX):
                taken = self._queue.take()
                if taken is None:
                    return
                flow, waiter = taken
                self._spent_of(flow).waited_ns += self.now_ns() - self._since_ns.pop(waiter)
                self._is_granted = not waiter()
                if self._is_granted or self._spent_ns >= room_ns:
                    return
        finally:
            self._rest_ns = self.now_ns() - self._spent_ns
            self._go_on()

    def _spent_of(self, flow: Flow) -> Spent:
        name = flow.client
        spent = self.spent.get(name)
        return self._begin(flow) if spent is None else spent

    def _begin(self, flow: Flow) -> Spent:
        """Keep what a client has under its name, or among the others where there is no room."""
        name, size_bytes = flow.client, size_of(flow.client)
        while not self._has_room(size_bytes):
            if not self._forget_one():
                return self.spent.setdefault(OTHER, Spent())
        self._names_bytes += size_bytes
        if not flow.connections:
            self._gone[name] = None
        spent = self.spent[name] = Spent()
        return spent

    def _has_room(self, size_bytes: int) -> bool:
        named = len(self.spent) - (OTHER in self.spent)
        return named < CLIENTS_NAMED_MAX and self._names_bytes + size_bytes <= NAMES_BYTES_MAX

    def _forget_one(self) -> bool:
        """Count a client that has left among the others; returns whether there was one."""
        while self._gone:
            name = next(iter(self._gone))
            del self._gone[name]
            flow = self._queue.find(*name)
            if flow is None or not flow.connections:
                gone, others = self.spent.pop(name), self.spent.setdefault(OTHER, Spent())
                others.loop_ns += gone.loop_ns
                others.waited_ns += gone.waited_ns
                self._names_bytes -= size_of(name)
                assert self._names_bytes >= 0, self._names_bytes
                return True
        return False


def size_of(name: tuple[str, str]) -> int:
    """Return the bytes that the names of a client take."""
    user, client_id = name
    return getsizeof(user) + getsizeof(client_id)
