"""Turns on the loop: nobody waits while it keeps up, whoever asks for little goes first when it does not."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from kavka_broker.core.fair_queueing import GONE_FLOWS_MAX, QUANTUM_NS
from kavka_broker.loop.slices import COST_PER_SLICE, Cost, LoopTime, Slices, Work
from kavka_broker.loop.turns import CLIENTS_NAMED_MAX, NAMES_BYTES_MAX, OTHER, Flow, Turns, size_of

TURNS = 200


class Greedy:
    """A connection that always has another request, each of which takes `cost_ns`."""

    def __init__(self, turns: Turns, client_id: str, cost_ns: int = QUANTUM_NS) -> None:
        self.turns, self.cost_ns, self.served = turns, cost_ns, 0
        self.flow = turns.join("alice", client_id)
        turns.wait(self.flow, self.take_turn)

    def take_turn(self) -> bool:
        self.served += 1
        self.turns.charge(self.flow, self.cost_ns)
        self.turns.wait(self.flow, self.take_turn)
        return True


def run(scenario: Callable[[Turns], Any]) -> None:
    async def main() -> None:
        await scenario(Turns(count(step=1).__next__))

    asyncio.run(main())


async def pass_turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_nobody_waits_while_the_loop_keeps_up() -> None:
    async def scenario(turns: Turns) -> None:
        flows = [turns.join("alice", str(number)) for number in range(10)]
        for flow in flows:
            assert turns.may_begin(flow)
            turns.charge(flow, QUANTUM_NS // 20)

    run(scenario)


def test_all_wait_once_a_quantum_has_gone_by_until_the_loop_has_looked_around() -> None:
    async def scenario(turns: Turns) -> None:
        greedy, other = turns.join("alice", "greedy"), turns.join("alice", "other")
        turns.charge(greedy, QUANTUM_NS)
        assert not turns.may_begin(other)
        await pass_turns(2)
        assert turns.may_begin(other)

    run(scenario)


def test_many_connections_of_a_client_get_no_more_than_one_of_another() -> None:
    async def scenario(turns: Turns) -> None:
        many = [Greedy(turns, "many") for _ in range(50)]
        one = Greedy(turns, "one")
        await pass_turns(TURNS)
        assert abs(sum(connection.served for connection in many) - one.served) <= 2
        assert one.served >= TURNS // 2 - 2

    run(scenario)


def test_who_asks_for_little_is_served_in_the_next_turn_beside_greedy_ones() -> None:
    async def scenario(turns: Turns) -> None:
        neighbours = [Greedy(turns, f"greedy-{number}") for number in range(5)]
        await pass_turns(20)
        light, served = turns.join("bob", "light"), list[int]()

        def take_turn() -> bool:
            turns.charge(light, 10_000)
            served.append(sum(neighbour.served for neighbour in neighbours))
            return True

        for _ in range(20):
            before = sum(neighbour.served for neighbour in neighbours)
            turns.wait(light, take_turn)
            await pass_turns(2)
            assert served.pop() - before <= 1, "it waited for more than the turn in hand"
            await pass_turns(10)

    run(scenario)


def count_to(units: int, done: list[int]) -> Work[None]:
    cost = Cost()
    for number in range(units):
        if cost.add(1):
            done.append(number)
            yield


def test_slices_of_clients_take_turns_and_who_has_many_works_gets_no_more() -> None:
    async def scenario(turns: Turns) -> None:
        slices = Slices()
        slices.time = LoopTime(count(step=QUANTUM_NS).__next__, turns)
        done: dict[str, list[int]] = {"many": [], "one": []}

        class Request:
            loop_ns, queue_name = 0, ("alice", "")

            def __init__(self, flow: Flow) -> None:
                self.flow = flow

        works = []
        for client_id, number in (("many", 10), ("one", 1)):
            slices.time.payer = Request(turns.join("alice", client_id))
            works += [slices.run(count_to(100 * COST_PER_SLICE, done[client_id])) for _ in range(number)]
        slices.time.payer = None
        await pass_turns(TURNS)
        assert len(done["one"]) >= 0.4 * len(done["many"])
        assert len(done["one"]) >= TURNS // 5
        for work in works:
            assert isinstance(work, asyncio.Task)
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)  # type: ignore[arg-type]

    run(scenario)


def test_work_that_is_given_up_in_its_turn_lets_the_others_go_on() -> None:
    async def scenario(turns: Turns) -> None:
        slices = Slices()
        slices.time = LoopTime(turns.now_ns, turns)
        for given_up_after in range(4):
            first = slices.run(count_to(50 * COST_PER_SLICE, []))
            second = slices.run(count_to(5 * COST_PER_SLICE, []))
            assert isinstance(first, asyncio.Task)
            assert isinstance(second, asyncio.Task)
            await pass_turns(given_up_after)
            first.cancel()
            async with asyncio.timeout(60):
                await second

    run(scenario)


def test_a_waiter_that_fails_takes_no_turn_from_the_others() -> None:
    async def scenario(turns: Turns) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)

        def failing() -> bool:
            raise ValueError("a defect")

        turns.wait(turns.join("alice", "failing"), failing)
        other = Greedy(turns, "other")
        await pass_turns(10)
        assert other.served

    run(scenario)


def test_a_client_that_has_left_makes_room_for_another_and_is_counted_among_the_others() -> None:
    async def scenario(turns: Turns) -> None:
        first, stays, last = (turns.join("alice", name) for name in ("first", "stays", "last"))
        for flow in (first, stays, last):
            turns.charge(flow, 1_000)
        for number in range(CLIENTS_NAMED_MAX):
            turns.charge(turns.join("bob", f"{number}"), 1)
        assert ("alice", "first") in turns.spent
        assert turns.spent[OTHER].loop_ns == 3, "there was no room for three more"
        turns.leave(last)
        turns.leave(first)
        turns.join("alice", "first")  # it is here again
        turns.charge(turns.join("carol", "new"), 7)
        assert turns.spent["carol", "new"].loop_ns == 7
        assert turns.spent["alice", "stays"].loop_ns == turns.spent["alice", "first"].loop_ns == 1_000
        assert ("alice", "last") not in turns.spent
        assert turns.spent[OTHER].loop_ns == 1_003
        turns.charge(turns.join("carol", "newer"), 9)
        assert turns.spent[OTHER].loop_ns == 1_012, "nobody else has left"
        turns.leave(stays)
        turns.charge(last, 5)  # of work that goes on behind its connection
        assert turns.spent["alice", "last"].loop_ns == 5
        turns.charge(turns.join("carol", "newest"), 1)
        assert ("carol", "newest") in turns.spent
        assert not {("alice", "last"), ("alice", "stays")} & turns.spent.keys()
        assert turns.spent[OTHER].loop_ns == 2_017
        assert len(turns.spent) == CLIENTS_NAMED_MAX + 1

    run(scenario)


def test_names_of_clients_are_bounded_in_bytes() -> None:
    async def scenario(turns: Turns) -> None:
        wide = "\U0001f600" * 250
        flows = [turns.join(f"{number}{wide}", f"{number}{wide}") for number in range(CLIENTS_NAMED_MAX)]
        for flow in flows:
            turns.charge(flow, 1)
        kept = [name for name in turns.spent if name != OTHER]
        assert NAMES_BYTES_MAX // 2 < sum(map(size_of, kept)) <= NAMES_BYTES_MAX
        assert sum(spent.loop_ns for spent in turns.spent.values()) == CLIENTS_NAMED_MAX
        for flow in flows:
            turns.leave(flow)
        turns.charge(turns.join("alice", "a"), 1)
        assert ("alice", "a") in turns.spent

    run(scenario)


def test_invented_client_ids_take_no_memory() -> None:
    async def scenario(turns: Turns) -> None:
        for number in range(20_000):
            flow = turns.join("mallory", f"invented-{number}")
            turns.charge(flow, 1_000)
            turns.leave(flow)
        assert len(turns.spent) <= CLIENTS_NAMED_MAX + 1
        assert turns.spent[OTHER].loop_ns
        assert turns.flow_count <= GONE_FLOWS_MAX + 1

    run(scenario)


def test_clients_have_half_of_a_loop_that_is_busy_with_other_work() -> None:
    """Ten ms of opening logs in each turn of the loop would leave a quantum of eleven to all clients."""

    async def main() -> None:
        now = [0]
        turns = Turns(lambda: now[0])
        served = list[int]()

        class Client(Greedy):
            def take_turn(self) -> bool:
                now[0] += self.cost_ns
                return super().take_turn()

        client = Client(turns, "a")
        for _ in range(TURNS):
            before = client.served
            now[0] += 4 * QUANTUM_NS
            await asyncio.sleep(0)
            served.append(client.served - before)
        assert set(served[1:]) == {4}

    asyncio.run(main())


def test_time_in_which_the_loop_rests_is_no_work_of_others() -> None:
    """Who comes after a pause has a quantum, and then the loop looks around: others may have come after it as well."""

    async def main() -> None:
        now = [0]
        turns = Turns(lambda: now[0])

        class Client(Greedy):
            def take_turn(self) -> bool:
                now[0] += self.cost_ns
                return super().take_turn()

        for pause in range(3):
            now[0] += 1000 * QUANTUM_NS
            client = Client(turns, f"after-{pause}")
            await asyncio.sleep(0)
            assert client.served == 1
            turns.forget(client.flow, client.take_turn)
            await pass_turns(2)

    asyncio.run(main())


def test_the_loop_rests_when_the_last_that_waited_is_gone() -> None:
    """The queue still knows its client: a loop that served nobody for it in each turn ran in a circle."""

    async def scenario(turns: Turns) -> None:
        greedy = Greedy(turns, "a")
        turns.forget(greedy.flow, greedy.take_turn)
        await pass_turns(5)
        assert not turns.is_armed

    run(scenario)
