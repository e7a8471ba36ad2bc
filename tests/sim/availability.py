"""Something is acknowledged while a fault lasts, not only when it is over.

The rule: as long as min.insync.replicas members of a partition's ISR are well, connected to each other, to the clients
and to a majority of the voters, and nothing about that changes, records of that partition are committed again after
the time that the configured timeouts allow.

Storms seldom leave things as they are for so long. So some seeds end with a siege: one node is taken out in one way,
and stays so until every partition that can has acknowledged something, or its time is over.
"""

import asyncio
from collections.abc import Iterable
from itertools import combinations
from random import Random
from typing import Any, Final

from tests.sim.history import Place, place_text
from tests.sim.node import DISK_DELAY_MS, Node
from tests.sim.reigns import active_controller, lead, leader_of

Simulation = Any

LOOK_SECONDS: Final = 0.5
CLIENT_SECONDS: Final = 20.0  # a client asks others who lead, one after the other, those who are silent too
PAIR_SHARE: Final = 0.45  # of the sieges
LAG_MS_MAX: Final = 5_000  # with a longer one nobody is besieged
KINDS: Final = ("isolate", "kill", "pause", "deaf", "mute", "full disk", "failing disk")


def patience_seconds(simulation: Simulation) -> float:
    """How long nothing may be acknowledged."""
    settings = simulation.shape.settings
    silent_ms = sum(
        int(settings.get(key, default))
        for key, default in (
            ("broker.session.timeout.ms", 9_000),
            ("replica.lag.time.max.ms", 30_000),
            ("controller.quorum.fetch.timeout.ms", 2_000),
            ("controller.quorum.election.timeout.ms", 1_000),
            ("controller.quorum.election.timeout.ms", 1_000),
        )
    )
    return silent_ms / 1000 + CLIENT_SECONDS


class Availability:
    """Looks at the partitions of the main topic now and then."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._connected: tuple[int, ...] = ()
        self._since = 0.0
        self._ends: dict[Place, tuple[int, float]] = {}  # committed up to, and since when
        self._patience = patience_seconds(simulation)

    def look(self) -> None:
        simulation, now = self._simulation, self._simulation.loop.time()
        connected = well_connected(simulation)
        if connected != self._connected:
            self._connected, self._since = connected, now
        for place in simulation.places:
            end = simulation.invariants.truths[place].end_offset if place in simulation.invariants.truths else 0
            if end != self._ends.get(place, (-1, 0.0))[0] or not self.is_possible(place):
                self._ends[place] = end, now
            elif now - max(self._since, self._ends[place][1]) > self._patience:
                state = simulation.invariants.partition_state(place)
                simulation.fail(
                    f"availability: {place_text(place)} stands at {end} for {now - self._ends[place][1]:.0f} s, though"
                    f" nodes {list(connected)} are well and connected: {state}; {simulation.where()}"
                )

    def is_possible(self, place: Place) -> bool:
        state = self._simulation.invariants.partition_state(place)
        if state is None:
            return False
        connected = {*self._simulation.heirs.entitled(place)} & {*self._connected}
        return bool(len(connected) >= self._simulation.shape.min_isr)

    async def watch(self) -> None:
        while True:
            self.look()
            self._simulation.heirs.look_for_leaders()
            await asyncio.sleep(LOOK_SECONDS)


def is_well(node: Node) -> bool:
    """Whether it takes records: its machine is well, and it does not refuse what it could not tell its audit trail."""
    is_whole = node.is_serving and not node.is_disk_faulty and not node.is_damaged
    return is_whole and node.disk_delay == DISK_DELAY_MS and not node.broker.is_refusing


def well_connected(simulation: Simulation) -> tuple[int, ...]:
    """The largest set of nodes that are well, hear each other and the clients, and hold a majority of the votes."""
    well = [node for node in simulation.nodes if is_well(node)]
    for size in range(len(well), 0, -1):
        for nodes in combinations(well, size):
            if has_majority(nodes) and are_connected(simulation, nodes):
                return tuple(node.node_id for node in nodes)
    return ()


def has_majority(nodes: Iterable[Node]) -> bool:
    by_id = {node.node_id: node for node in nodes}
    for node in by_id.values():
        voters = [voter.node_id for voter in node.broker.quorum.voters]
        if len([voter for voter in voters if voter in by_id]) <= len(voters) // 2:
            return False
    return True


def are_connected(simulation: Simulation, nodes: Iterable[Node]) -> bool:
    hosts = [node.host for node in nodes]
    network = simulation.network
    pairs = [*combinations(hosts, 2), *((host, client) for host in hosts for client in simulation.client_hosts)]
    return all(network.carries(source, other) and network.carries(other, source) for source, other in pairs)


# --- sieges -----------------------------------------------------------------------------------------------------------


async def besiege(simulation: Simulation) -> None:
    """Take one node out, and wait until the others serve without it."""
    random = Random(f"siege {simulation.seed}")
    node, kind = random.choice(simulation.nodes), random.choice(KINDS)
    lag_ms = int(simulation.shape.settings.get("replica.lag.time.max.ms", 30_000))
    if simulation.shape.nodes < 3 or simulation.shape.min_isr < 2 or lag_ms > LAG_MS_MAX:
        return
    simulation.heal()
    if not await is_whole(simulation) or not simulation.may_end(node):
        return
    pair = await some_pair(simulation)
    if pair is not None:
        kind = "cut pair"
    simulation.faults[f"siege: {kind}"] += 1
    simulation.say(f"siege: {kind} {' '.join(pair) if pair else node.host}")
    if pair is not None:
        simulation.network.cut(*pair)
        simulation.network.cut(*reversed(pair))
    else:
        take_out(simulation, node, kind)
    await asyncio.sleep(float(simulation.shape.settings.get("broker.session.timeout.ms", 9_000)) / 1000)
    before = dict(simulation.invariants.committed_ends)
    # `Availability` objects where this takes too long.
    while any(
        simulation.invariants.committed_ends[place] <= before[place] for place in simulation.places if place in before
    ):
        await asyncio.sleep(LOOK_SECONDS)
        if not any(map(simulation.availability.is_possible, simulation.places)):
            break
    simulation.events.counts["played.sieges"] += 1
    simulation.say("siege: over")


async def some_pair(simulation: Simulation) -> tuple[str, str] | None:
    """In some seeds the hosts of a leader and of a follower, neither of which is the controller: both hear it, so that
    nobody is fenced, and the leader has to notice by itself that the follower has gone.
    """
    random = Random(f"siege of a link {simulation.seed}")
    controller = active_controller(simulation)
    if random.random() > PAIR_SHARE or controller is None:
        return None
    place = random.choice(simulation.places)
    state = simulation.invariants.partition_state(place)
    others = [simulation.nodes[replica - 1] for replica in state.replicas if replica != controller.node_id]
    if len(others) < 2:
        return None
    leader, follower = random.sample(others, 2)
    if leader_of(simulation, place) is not leader and not await lead(simulation, place, leader):
        return None
    return leader.host, follower.host


async def is_whole(simulation: Simulation) -> bool:
    """Wait for all replicas to be in sync; whether that happens within a while."""
    for _ in range(40):
        states = [simulation.invariants.partition_state(place) for place in simulation.places]
        if all(map(is_well, simulation.nodes)) and all(
            state and len(state.isr) == len(state.replicas) for state in states
        ):
            return True
        await asyncio.sleep(LOOK_SECONDS)
    return False


def take_out(simulation: Simulation, node: Node, kind: str) -> None:
    """Take the node out in this way, until everything is healed."""
    others = [*(other.host for other in simulation.nodes if other is not node), *simulation.client_hosts]
    match kind:
        case "kill":
            node.kill()
        case "pause":
            node.pause()
        case "full disk":
            node.disk.space_bytes = 0
        case "failing disk":
            node.disk.fail_writes = True
    if kind in ("isolate", "deaf"):
        for other in others:
            simulation.network.cut(other, node.host)
    if kind in ("isolate", "mute"):
        for other in others:
            simulation.network.cut(node.host, other)
