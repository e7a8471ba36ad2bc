"""Fairness between clients: equal shares for the greedy, no waiting for who asks for little, bounded memory."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.fair_queueing import (
    CREDIT_NS,
    GONE_FLOWS_MAX,
    LIGHT_NS,
    PEER_WEIGHT,
    QUANTUM_NS,
    SHORT_QUANTUM_NS,
    FairQueue,
    Flow,
)

Waiter = tuple[str, int]
REQUEST_NS_MAX = 400_000
TURNS = 300
COSTS = st.integers(50_000, REQUEST_NS_MAX)


class Loop:
    """A loop with greedy clients, each of which always has requests on all of its connections."""

    def __init__(self, connections: list[int], costs: list[int]) -> None:
        self.queue: FairQueue[Waiter] = FairQueue()
        self.costs = costs
        self.had = {f"greedy-{number}": 0 for number in range(len(connections))}
        self.served: list[Waiter] = []
        self.time_ns = self._drawn = 0
        self.flows = {}
        for name, count in zip(self.had, connections, strict=True):
            self.flows[name] = self.queue.join("alice", name)
            for connection in range(count):
                self.queue.wait(self.flows[name], (name, connection))

    def cost(self) -> int:
        self._drawn += 1
        return self.costs[self._drawn % len(self.costs)]

    def turn(self) -> Waiter:
        """Serve the next connection until it has had a quantum, and have it wait again."""
        taken = self.queue.take()
        assert taken is not None
        flow, waiter = taken
        spent, quantum_ns = 0, self.queue.quantum_ns
        while spent < quantum_ns:
            spent += self.cost()
        self.queue.charge(flow, spent)
        self.time_ns += spent
        if waiter[0] in self.had:
            self.had[waiter[0]] += spent
            self.queue.wait(flow, waiter)
        self.served.append(waiter)
        return waiter


def jain(shares: list[int]) -> float:
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


@given(
    st.lists(st.integers(1, 8), min_size=2, max_size=6),
    st.lists(COSTS, min_size=1, max_size=20),
)
@settings(max_examples=25)
def test_equally_greedy_clients_get_equal_shares_on_however_many_connections(
    connections: list[int], costs: list[int]
) -> None:
    loop = Loop(connections, costs)
    for _ in range(TURNS):
        loop.turn()
    assert jain(list(loop.had.values())) >= 0.99
    for number, count in enumerate(connections):
        turns = [loop.served.count((f"greedy-{number}", connection)) for connection in range(count)]
        assert max(turns) - min(turns) <= 1, "connections of a client take turns"


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=6),
    st.lists(COSTS, min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 5), COSTS), min_size=20, max_size=60),
)
@settings(max_examples=25)
def test_a_client_that_asks_for_less_than_its_share_waits_for_the_turn_in_hand(
    connections: list[int], costs: list[int], asks: list[tuple[int, int]]
) -> None:
    loop = Loop(connections, costs)
    light = loop.queue.join("bob", "light")
    for _ in range(2 * len(connections)):
        loop.turn()  # whoever has just come is not known to be greedy before its first turn
    allowance_ns, seen_ns = CREDIT_NS - REQUEST_NS_MAX, loop.time_ns
    for pause, cost in asks:
        for _ in range(pause):
            loop.turn()
        half_a_share_ns = (loop.time_ns - seen_ns) // (2 * len(connections) + 2)
        allowance_ns, seen_ns = min(CREDIT_NS - REQUEST_NS_MAX, allowance_ns + half_a_share_ns), loop.time_ns
        if cost > allowance_ns:
            continue  # a burst of more than its share
        quantum_ns = loop.queue.quantum_ns
        loop.turn()  # is in hand when it comes
        assert loop.time_ns - seen_ns <= quantum_ns + REQUEST_NS_MAX
        loop.queue.wait(light, ("light", 0))
        assert loop.queue.take() == (light, ("light", 0)), "it is next"
        loop.queue.charge(light, cost)
        allowance_ns -= cost
        loop.time_ns += cost


@given(st.lists(COSTS, min_size=1, max_size=20))
def test_other_nodes_get_eight_times_the_share_of_a_client(costs: list[int]) -> None:
    loop = Loop([1, 1], costs)
    loop.had["peer"] = 0
    loop.queue.wait(loop.queue.join("", "broker-2", PEER_WEIGHT), ("peer", 0))
    for _ in range(TURNS):
        loop.turn()
    assert loop.had["peer"] >= 0.95 * PEER_WEIGHT * loop.had["greedy-0"]


@given(st.lists(st.tuples(st.integers(0, 3), COSTS), min_size=1, max_size=50))
def test_who_pauses_comes_back_with_no_more_than_a_credit(work: list[tuple[int, int]]) -> None:
    queue: FairQueue[Waiter] = FairQueue()
    flows: list[Flow[Waiter]] = [queue.join("alice", str(number)) for number in range(4)]
    for number, cost in work:
        queue.charge(flows[number], cost)
    late = queue.join("alice", "late")
    queue.wait(late, ("late", 0))
    assert late.used_ns == max(0, queue.now_ns - CREDIT_NS)


def test_invented_client_ids_take_no_memory() -> None:
    queue: FairQueue[Waiter] = FairQueue()
    for number in range(100_000):
        flow = queue.join("mallory", f"invented-{number}")
        queue.charge(flow, 10_000)
        queue.leave(flow)
    assert queue.flow_count <= GONE_FLOWS_MAX


def test_who_reconnects_finds_what_it_has_used() -> None:
    queue: FairQueue[Waiter] = FairQueue()
    other, greedy = queue.join("alice", "other"), queue.join("alice", "greedy")
    queue.wait(other, ("other", 0))
    queue.charge(greedy, 5 * QUANTUM_NS)
    queue.leave(greedy)
    again = queue.join("alice", "greedy")
    assert again.used_ns >= 5 * QUANTUM_NS
    assert not queue.goes_first(again)


def test_who_waits_no_more_gets_no_turn() -> None:
    queue: FairQueue[Waiter] = FairQueue()
    flow = queue.join("alice", "one")
    queue.wait(flow, ("one", 0))
    queue.wait(flow, ("one", 1))
    queue.forget(flow, ("one", 0))
    assert queue.take() == (flow, ("one", 1))
    assert queue.take() is None
    assert len(queue) == 0


def test_a_flow_stays_as_long_as_one_of_its_connections() -> None:
    queue: FairQueue[Waiter] = FairQueue()
    flow = queue.join("alice", "one")
    assert queue.join("alice", "one") is flow
    queue.charge(queue.join("alice", "greedy"), 100 * CREDIT_NS)
    queue.leave(flow)
    assert queue.find("alice", "one") is flow
    queue.leave(flow)
    assert queue.find("alice", "one") is None


def test_who_has_had_as_little_as_the_first_that_waits_goes_before_it() -> None:
    queue: FairQueue[Waiter] = FairQueue()
    first, second, greedy = (queue.join("alice", name) for name in ("first", "second", "greedy"))
    queue.wait(first, ("first", 0))
    queue.charge(greedy, 5 * QUANTUM_NS)
    assert queue.goes_first(second)
    assert not queue.goes_first(greedy)
    assert not queue.goes_first(first), "it waits already"


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.lists(COSTS, min_size=1, max_size=20), st.integers(0, 9))
def test_turns_are_short_while_a_client_is_there_that_asks_for_little(
    connections: list[int], costs: list[int], rounds: int
) -> None:
    loop = Loop(connections, costs)
    light = loop.queue.join("bob", "light")
    for _ in range(2 * len(connections)):
        loop.turn()
    for _ in range(rounds):
        assert loop.queue.quantum_ns == QUANTUM_NS, "none but greedy ones have been here"
        pass_time(loop, 2 * len(connections) * CREDIT_NS)
        loop.queue.charge(light, 10_000)
        assert loop.queue.quantum_ns == SHORT_QUANTUM_NS
        pass_time(loop, (len(connections) + 1) * LIGHT_NS)


def pass_time(loop: Loop, time_ns: int) -> None:
    end_ns = loop.time_ns + time_ns
    while loop.time_ns < end_ns:
        loop.turn()


def test_a_client_alone_has_long_turns_however_often_it_pauses() -> None:
    queue: FairQueue[Waiter] = FairQueue()
    alone = queue.join("alice", "alone")
    for _ in range(100):
        queue.charge(alone, 3 * QUANTUM_NS)
        assert queue.quantum_ns == QUANTUM_NS


def test_another_node_that_asks_for_little_makes_no_turn_shorter() -> None:
    queue: FairQueue[Waiter] = FairQueue()
    greedy, peer = queue.join("alice", "greedy"), queue.join("", "broker-2", PEER_WEIGHT)
    for _ in range(100):
        queue.charge(greedy, 3 * QUANTUM_NS)
        queue.charge(peer, 10_000)
    assert queue.quantum_ns == QUANTUM_NS
