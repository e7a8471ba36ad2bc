"""A decision of a former epoch on a majority of disks, which the leader of a later epoch takes away (Raft, figure 8).

The leader of the quorum decides, nobody else gets it, and another leads for a moment, of which nobody gets the record
that begins its epoch. The first leads again; a voter gets the decision, says so, and gets no more. A majority has the
decision now. But it is of a former epoch: the second one's log ends in a later epoch, so that it may lead again.
"""

import asyncio
from collections.abc import Iterable
from itertools import product
from typing import Any, Final

from tests.sim.faults import Fault, begin
from tests.sim.invariants import METADATA
from tests.sim.node import CONTROLLER_PORT, Node
from tests.sim.occasions import occasion_random
from tests.sim.reigns import FETCH, active_controller, let_fetch, until
from tests.sim.successions import HELD_SECONDS_MAX, QUORUM_SECONDS_MAX, decide_something, end_on

Simulation = Any
Link = tuple[str, str]

VOTERS: Final = 3
HEARD_SECONDS: Final = 0.4  # the leader has heard by then what a voter has synced
GOT_SECONDS_MAX: Final = 2.0
NEXT_SECONDS: Final = 0.0002  # less than a voter takes to sync and to ask for what comes next
#: What a planted defect is played with: a voter that fetches a decision gets nothing beside it.
ONE_DECISION: Final = {"controller.quorum.fetch.max.bytes": "150"}


class Links:
    """Links between nodes that are cut here, and healed again."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._cut: dict[Link, None] = {}

    def cut(self, links: Iterable[Link]) -> None:
        for link in links:
            self._simulation.network.cut(*link)
            self._cut[link] = None

    def cut_off(self, node: Node) -> None:
        """Both ways, from all other nodes; those who were cut off before are back."""
        self.heal()
        others = [other.host for other in self._simulation.nodes if other is not node]
        self.cut([*product([node.host], others), *product(others, [node.host])])

    def heal(self) -> None:
        for link in self._cut:
            self._simulation.network.heal(*link)
        self._cut.clear()


async def former_decision(simulation: Simulation) -> None:
    """See above."""
    random, first = occasion_random(simulation, "former_decision"), active_controller(simulation)
    voters = [] if first is None else [voter.node_id for voter in first.broker.quorum.voters]
    others = [simulation.nodes[voter - 1] for voter in voters if first and voter != first.node_id]
    are_there = len(voters) == VOTERS and all(node.is_serving and not node.is_disk_faulty for node in others)
    if first is None or not are_there or simulation.network.holds:
        return
    begin(simulation, "former_decision", f"{first.host} decides, and {' '.join(node.host for node in others)} lack it")
    random.shuffle(others)
    holds = [simulation.network.hold(node.host, FETCH, only_to_port=CONTROLLER_PORT) for node in others]
    links, deciding = Links(simulation), None
    try:
        if not await until(simulation, lambda: all(hold.pipes for hold in holds), HELD_SECONDS_MAX):
            return
        before = end_on(simulation, first, METADATA)
        deciding = simulation.loop.create_task(decide_something(simulation))
        if not await until(simulation, lambda: end_on(simulation, first, METADATA) > before, HELD_SECONDS_MAX):
            return
        decided = end_on(simulation, first, METADATA)
        links.cut_off(first)
        if not await until(simulation, lambda: active_controller(simulation) in others, QUORUM_SECONDS_MAX):
            return
        second = active_controller(simulation)
        third = next(node for node in others if node is not second)
        assert second is not None
        links.cut_off(second)
        if not await until(simulation, lambda: active_controller(simulation) is first, QUORUM_SECONDS_MAX):
            return
        let_fetch(simulation, others, holds)
        has_decision = lambda: end_on(simulation, third, METADATA) >= decided  # noqa: E731
        if await until(simulation, has_decision, GOT_SECONDS_MAX, look_seconds=NEXT_SECONDS):
            links.cut([(first.host, third.host)])
            await asyncio.sleep(HEARD_SECONDS)
            links.cut_off(first)
            await until(simulation, lambda: active_controller(simulation) is second, QUORUM_SECONDS_MAX)
    finally:
        let_fetch(simulation, others, holds)
        links.heal()
        if deciding is not None:
            deciding.cancel()


FORMER_DECISIONS: Final[dict[str, Fault]] = {"former_decision": former_decision}
