"""What a seed does last, when everything is whole and nothing else happens any more.

While records come all the time, the next of them tells what an earlier answer has not. So, where the cluster is quiet:

    a last reign    a leader takes a record that nobody gets, and another leads: what the former is told as it cuts its
                    log is the last that it hears of the partition
    a last move     a replica goes into another directory, and stays there
    last occasions  what waits for its moment (`occasions`, `successions`, `former_decisions`), one after the other:
                    in a storm other faults come between
"""

from random import Random
from typing import Any, Final

from tests.sim.faults import Fault
from tests.sim.former_decisions import FORMER_DECISIONS
from tests.sim.moving import move
from tests.sim.occasions import lost_answer
from tests.sim.reigns import hold_fetches, lead, leader_of, let_fetch, send_once, until, whole
from tests.sim.successions import SUCCESSIONS

Simulation = Any

REIGN_SHARE, DEATH_SHARE, MOVE_SHARE = 0.75, 0.7, 0.7
HELD_SECONDS_MAX: Final = 2.0
MOVED_BYTES_MAX: Final = 30_000
MOVED_SECONDS_MAX: Final = 20.0
#: What comes last, and in which share of the seeds.
LAST: Final[dict[str, Fault]] = {**SUCCESSIONS, **FORMER_DECISIONS, "lost_answer": lost_answer}
LAST_SHARE: Final = 0.4


def last_of(seed: int) -> list[str]:
    """The occasions that come last in this seed."""
    return [name for name in LAST if Random(f"last {name} {seed}").random() < LAST_SHARE]


async def last_occasions(simulation: Simulation) -> None:
    """Play them, each in a cluster that is whole or will be."""
    for name in last_of(simulation.seed):
        await until(simulation, lambda: not simulation.invariants.missing_at_the_end(), MOVED_SECONDS_MAX)
        await LAST[name](simulation)
        for node in simulation.nodes:
            if not node.is_alive:
                node.start()


async def last_reign(simulation: Simulation) -> None:
    """Leave a leader with a record of its own, and have another lead."""
    random, places = Random(f"last reign {simulation.seed}"), whole(simulation)
    if not places or random.random() > REIGN_SHARE:
        return
    place = random.choice(places)
    state, former = simulation.invariants.partition_state(place), leader_of(simulation, place)
    followers = [simulation.nodes[replica - 1] for replica in state.isr if replica != state.leader]
    if former is None:
        return
    holds = hold_fetches(simulation, followers)
    try:
        await until(simulation, lambda: all(hold.pipes for hold in holds), HELD_SECONDS_MAX)
        await send_once(simulation, place, former)
        if random.random() < DEATH_SHARE and simulation.may_end(former):
            former.kill()  # who starts again knows less of what is committed
            await until(simulation, lambda: leader_of(simulation, place) not in (None, former), HELD_SECONDS_MAX)
        else:
            await lead(simulation, place, random.choice(followers))
    finally:
        let_fetch(simulation, followers, holds)
        if not former.is_alive:
            former.start()
    simulation.events.counts["played.last_reigns"] += leader_of(simulation, place) is not former


async def last_move(simulation: Simulation) -> None:
    """Move one replica into another directory of its node, and wait until it is there."""
    random, places = Random(f"last move {simulation.seed}"), whole(simulation, 1)
    if simulation.shape.directories < 2 or not places or random.random() > MOVE_SHARE:
        return
    place = random.choice(places)
    node = simulation.nodes[random.choice(simulation.invariants.partition_state(place).replicas) - 1]
    replica = node.broker.partitions.get(*place)
    if replica is None or replica.log.size_bytes > MOVED_BYTES_MAX:
        return
    former = replica.log.directory
    await move(simulation, place, node)
    is_there = await until(simulation, lambda: replica.log.directory != former, MOVED_SECONDS_MAX)
    simulation.events.counts["played.last_moves"] += is_there
