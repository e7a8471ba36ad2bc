"""NobodyStarves and TurnsAreFair: clients take turns on the loop of a broker, and each turn comes.

| invariant | meaning |
|---|---|
| NobodyStarves | time goes on while a request that has arrived whole is not begun, and nothing holds its connection |
| | a connection over a quota is held for longer than its delay |
| TurnsAreFair | while a client waits, another gets more of the loop than it by more than some turns, by their weights |

Work takes no simulated time, and whoever waits has its turn in the same moment: the loop has nothing left to do before
time goes on. Only a process that is paused or busy may leave anything undone; each of its steps is still judged by what
the clients have had, as the broker measures it: readings of a clock of work, which are the same in each run.

The newcomers of all addresses are judged as one, which has as many shares as there are addresses.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from kavka_broker.loop.turns import QUANTUM_NS, Turns
from kavka_broker.net.connection import IN_FLIGHT_MAX, OUTBOX_BYTES_MAX, Connection

Simulation = Any
Name = tuple[str, str]

LOOK_SECONDS: Final = 0.1
AHEAD_NS_MAX: Final = 8 * QUANTUM_NS
"""A pause earns a quantum, and a turn is one with the rest of a request. Answers that are ready do not wait for those
who have had less.
"""
LATE_MS_MAX: Final = 1_000
"""For which a connection may be held behind its delay: clocks drift."""
SIZE_BYTES: Final = 4


class FairTurns:
    """Looks at all brokers of a simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        # Of each client that waits: what all had had when it began to.
        self._waits: dict[Turns, dict[Name, dict[Name, int]]] = {}
        self._weights: dict[Name, int] = {}  # the largest that a client has had, of all its flows
        self._look_at = 0.0
        simulation.loop.before_time_goes_on = self.before_time_goes_on

    # --- after each step ------------------------------------------------------------------------------------------

    def after_step(self, node: Any) -> None:
        """A step of this node is done. In most of them nobody waits."""
        turns = turns_of(node)
        if turns is None or not (turns._since_ns or turns in self._waits):
            return
        now = {name: spent.loop_ns for name, spent in turns.spent.items()}
        weights, before = self._weights_of_waiting(turns), self._waits.pop(turns, {})
        if weights:
            self.simulation.events.counts["played.turns_waited_for"] += len(weights.keys() - before.keys())
            self._waits[turns] = {name: before.get(name, now) for name in weights}
        for name, weight in weights.items():
            self._judge(node, name, now, self._waits[turns][name], weight)

    def _weights_of_waiting(self, turns: Turns) -> dict[Name, int]:
        """Of each client that waits for a turn, the least of its flows that do."""
        found, weights = dict[Name, int](), Counter[Name]()
        for flow in turns._queue._flows.values():
            weights[flow.client] += flow.weight
            self._weights[flow.client] = max(weights[flow.client], self._weights.get(flow.client, 0))
            if flow.waiting:
                found[flow.client] = min(flow.weight, found.get(flow.client, flow.weight))
        return found

    def _judge(self, node: Any, name: Name, now: dict[Name, int], had_ns: dict[Name, int], weight: int) -> None:
        """Hold what others have had since this client waits against what it has had itself."""
        own_ns = (now.get(name, 0) - had_ns.get(name, 0)) / weight
        for other, loop_ns in now.items():
            others_ns = (loop_ns - had_ns.get(other, 0)) / self._weights.get(other, 1)
            if other != name and others_ns - own_ns > AHEAD_NS_MAX:
                told = f"{others_ns / 1e6:.1f} ms, {name[1]!r}, which waits, {own_ns / 1e6:.1f} ms"
                self.simulation.fail(f"TurnsAreFair: {node.process} has given {other[1]!r} {told}")

    # --- before time goes on --------------------------------------------------------------------------------------

    def before_time_goes_on(self) -> None:
        """Nothing is ready any more: nobody may be waiting for a turn. Inboxes are looked at now and then."""
        is_look = self.simulation.loop.now >= self._look_at
        if is_look:
            self._look_at = self.simulation.loop.now + LOOK_SECONDS
        for node in self.simulation.nodes:
            process, turns = node.process, turns_of(node)
            if turns is None or not process.is_alive or process.is_paused or process.is_busy:
                continue
            if turns._since_ns:
                self.simulation.fail(f"NobodyStarves: {process} gives no turn to {len(turns._since_ns)} that wait")
            if is_look:
                self._look(node)

    def _look(self, node: Any) -> None:
        for connection in connections_of(node):
            client = connection._flow.client[1]
            if has_whole_request(connection) and not held_by(connection):
                self.simulation.fail(f"NobodyStarves: {node.process} does not begin a request of {client!r}")
            if connection.is_muted and node.clock.monotonic_ms() > connection.muted_until_ms + LATE_MS_MAX:
                self.simulation.fail(f"NobodyStarves: {node.process} holds {client!r} for longer than its delay")


def turns_of(node: Any) -> Turns | None:
    """Return those of its present life."""
    turns: Turns | None = None if node.server is None else node.server.addresses.turns
    return turns


def connections_of(node: Any) -> Iterator[Connection]:
    for listener in node.server.addresses:
        yield from listener.connections


def has_whole_request(connection: Connection) -> bool:
    inbox = connection._inbox
    head = inbox._view[inbox._start : inbox._start + SIZE_BYTES]
    return inbox.waiting_bytes >= SIZE_BYTES and inbox.waiting_bytes >= SIZE_BYTES + int.from_bytes(head, "big")


def held_by(connection: Connection) -> str:
    """Return why the connection may begin nothing now; empty where it may."""
    exchanges = connection._exchanges
    last = exchanges[-1] if exchanges else None
    reasons = {
        "the request before waits": last is not None and not (last.api.pipelined and not last.client.is_holding),
        "it is over a quota": connection.is_muted,
        "it does not read": connection.outbox.waiting_bytes > OUTBOX_BYTES_MAX,
        "it has enough in flight": len(exchanges) >= IN_FLIGHT_MAX,
        "it is closing": connection._transport.is_closing(),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
