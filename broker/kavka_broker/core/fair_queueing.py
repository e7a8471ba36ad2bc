"""Who has the next turn on the loop: fairness between clients, by the time that each has had.

A flow is all that one (principal, client id) asks for, on however many connections; `part` tells flows apart that go by
the same name, as connections do whose client is not known yet. What it has had, divided by its
weight, is its `used_ns`; of the flows that wait, the one that has used least is next, and its connections take turns.
(This is start-time fair queueing.) So equally greedy flows get equal shares. A flow that asks for less than its share
has always used less than the greedy ones and is next whenever it comes: it waits for the turn in hand.

The queue has a time of its own, `now_ns`: what the flow has used whose turn it is. A flow that comes back after a pause
is taken to have used as much, less `CREDIT_NS`: a pause earns one turn ahead of others, and no more. For the same
reason a flow may be forgotten once that time has passed it. What is kept of flows whose connections are all gone is
bounded by `GONE_FLOWS_MAX`.

A turn costs its connection a write and a look at the socket, so long turns are cheap, and short ones are what a flow
waits for that asks for little. Turns are short for as long as such a flow has lately been there, and long otherwise.
"""

from collections import OrderedDict
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

QUANTUM_NS: Final = 1_000_000
"""A turn: whoever has had the loop for so long lets others go first."""
SHORT_QUANTUM_NS: Final = 300_000
"""A turn while a client is there that asks for less than its share."""
LIGHT_NS: Final = 100_000_000
"""Such a client is taken to be there until others have used so much without it."""
CREDIT_NS: Final = QUANTUM_NS
CLIENT_WEIGHT: Final = 1
PEER_WEIGHT: Final = 8
"""Of other nodes: replication and the quorum get eight times the share of a client, however many clients there are."""
GONE_FLOWS_MAX: Final = 1_000

W = TypeVar("W")
Name = tuple[str, str, int, str]


class Flow(Generic[W]):
    """What one client has used, and what of it waits."""

    __slots__ = ("client", "connections", "is_of_peer", "is_part", "is_queued", "name", "used_ns", "waiting", "weight")

    def __init__(self, name: Name) -> None:
        assert name[2] >= 1, f"{name} would never have had enough"
        self.name = name
        self.client, self.weight, self.is_part = name[:2], name[2], bool(name[3])
        self.is_of_peer = self.weight == PEER_WEIGHT
        self.used_ns = 0
        self.connections = 0
        self.is_queued = False
        self.waiting: OrderedDict[W, None] = OrderedDict()


class FairQueue(Generic[W]):
    """The flows, and who of them waits for a turn. Waiters are told apart by their hash."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.quantum_ns = QUANTUM_NS  # how long a turn is; long again with the first that is taken after `LIGHT_NS`
        self._light_ns = 0  # the time at which a client came that had used less than others
        self._flows: dict[Name, Flow[W]] = {}
        self._gone: OrderedDict[Name, None] = OrderedDict()
        self._heap: list[tuple[int, int, Flow[W]]] = []
        self._numbers = 0

    def __len__(self) -> int:
        """Return how many flows are queued, which is above 0 exactly while a connection or a slice waits."""
        return len(self._heap)

    @property
    def flow_count(self) -> int:
        """How many flows are known."""
        return len(self._flows)

    def find(self, user: str, client_id: str) -> Flow[W] | None:
        """Return the flow of a client that has connections, or has had more than others."""
        return self._flows.get((user, client_id, CLIENT_WEIGHT, ""))

    def join(self, user: str, client_id: str, weight: int = CLIENT_WEIGHT, part: str = "") -> Flow[W]:
        """Return the flow of a connection's client, until the connection leaves it."""
        name = (user, client_id, weight, part)
        flow = self._flows.get(name)
        if flow is None:
            flow = self._flows[name] = Flow(name)
        flow.connections += 1
        self._gone.pop(name, None)
        return flow

    def leave(self, flow: Flow[W]) -> None:
        """A connection of the flow is gone. What the flow has used counts on where it is more than others have."""
        assert flow.connections > 0, f"{flow.name} has no connection to lose"
        assert self._flows.get(flow.name) is flow, f"{flow.name} is another flow here"
        flow.connections -= 1
        if flow.connections:
            return
        if flow.used_ns <= self.now_ns - CREDIT_NS:
            del self._flows[flow.name]
            return
        self._gone[flow.name] = None
        if len(self._gone) > GONE_FLOWS_MAX:
            oldest, _ = self._gone.popitem(last=False)
            del self._flows[oldest]
        assert len(self._gone) <= GONE_FLOWS_MAX, len(self._gone)
        assert len(self._gone) <= len(self._flows), "a flow that is gone is forgotten and remembered"

    def goes_first(self, flow: Flow[W]) -> bool:
        """Whether the flow may take its turn before all that wait."""
        if not self._heap:
            return True
        return not flow.is_queued and self._start_ns(flow) <= self._heap[0][0]

    def charge(self, flow: Flow[W], cost_ns: int) -> None:
        """Count what the flow has had."""
        assert cost_ns >= 0, f"{flow.name} would get {-cost_ns} ns back"
        if flow.used_ns < self.now_ns - CREDIT_NS:
            self._catch_up(flow)
        flow.used_ns += cost_ns // flow.weight
        if flow.used_ns > self.now_ns and not self._heap:
            self.now_ns = flow.used_ns

    def wait(self, flow: Flow[W], waiter: W) -> None:
        """Have the waiter wait for a turn of its flow, behind the others of the flow."""
        flow.waiting[waiter] = None
        if not flow.is_queued:
            if flow.used_ns < self.now_ns - CREDIT_NS:
                self._catch_up(flow)
            self._push(flow)

    def forget(self, flow: Flow[W], waiter: W) -> None:
        """The waiter waits no more."""
        flow.waiting.pop(waiter, None)
        self._let_go()

    def take(self) -> tuple[Flow[W], W] | None:
        """Return the waiter whose turn it is, with its flow; None where nobody waits."""
        while self._heap:
            used_ns, _, flow = heappop(self._heap)
            assert flow.is_queued, f"{flow.name} is queued twice"
            assert used_ns <= flow.used_ns, f"{flow.name} had {used_ns} ns, and now {flow.used_ns}"
            flow.is_queued = False
            if not flow.waiting:
                continue
            if used_ns < flow.used_ns:  # charged while it waited
                self._push(flow)
                continue
            self.now_ns = max(self.now_ns, used_ns)
            if self.now_ns - self._light_ns >= LIGHT_NS:
                self.quantum_ns = QUANTUM_NS
            waiter, _ = flow.waiting.popitem(last=False)
            if flow.waiting:
                self._push(flow)
            self._let_go()
            return flow, waiter
        return None

    def _let_go(self) -> None:
        """Drop flows without waiters from the head: a head always has a waiter."""
        while self._heap and not self._heap[0][2].waiting:
            heappop(self._heap)[2].is_queued = False

    def _start_ns(self, flow: Flow[W]) -> int:
        return max(flow.used_ns, self.now_ns - CREDIT_NS)

    def _catch_up(self, flow: Flow[W]) -> None:
        """Have a flow begin that has used less than others: a light one, where it is a client's."""
        flow.used_ns = self._start_ns(flow)
        if not flow.is_of_peer:
            self._light_ns, self.quantum_ns = self.now_ns, SHORT_QUANTUM_NS

    def _push(self, flow: Flow[W]) -> None:
        assert flow.waiting, f"{flow.name} is queued, and nobody waits"
        assert not flow.is_queued, f"{flow.name} would be queued twice"
        flow.is_queued = True
        self._numbers += 1
        heappush(self._heap, (flow.used_ns, self._numbers, flow))
