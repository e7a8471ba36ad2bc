"""Which faults a seed meets, and when.

Each seed draws its own mix: some kinds of fault never, others often (swarm testing: a rare pair of faults is found
where the rest is quiet). Waves go on side by side, each with chance and pace of its own: of processes, links and disks
that stop (`faults`), of calls, clocks and media that are not as they should be (`disk_faults`), and in a few seeds
of damage to a node that is down: to the metadata of a voter (`damaged_metadata`), to whole segments
(`damaged_segments`), of processes without a free descriptor (`descriptors`), and of what has to meet its moment
(`occasions`, `successions`). What needs three elections in a row has no chance in a storm: `closing` plays it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from tests.sim.damaged_metadata import METADATA_FAULTS
from tests.sim.damaged_segments import SEGMENT_FAULTS
from tests.sim.descriptors import DESCRIPTOR_FAULTS
from tests.sim.disk_faults import DISK_FAULTS
from tests.sim.faults import FAULTS, Fault
from tests.sim.former_decisions import FORMER_DECISIONS
from tests.sim.occasions import OCCASIONS
from tests.sim.orphaned_decisions import ORPHANED_DECISIONS
from tests.sim.successions import SUCCESSIONS
from tests.sim.transaction_packets import LATE_PACKETS

Simulation = Any
PACES: Final = (0.1, 0.4, 1.0, 2.5)  # seconds from one fault to the next
DISK_PACES: Final = (0.7, 1.5, 4.0)
RARE: Final[dict[str, Fault]] = {
    **METADATA_FAULTS,
    **SEGMENT_FAULTS,
    **DESCRIPTOR_FAULTS,
    **OCCASIONS,
    **SUCCESSIONS,
    **FORMER_DECISIONS,
    **LATE_PACKETS,
    **ORPHANED_DECISIONS,
}
#: Kinds that are played where a test asks for them: they need elections in a row, or are for planted defects.
ASKED_FOR: Final = tuple(FORMER_DECISIONS)
#: Kinds that seeds with coordinators of transactions draw.
OF_TRANSACTIONS: Final = (*LATE_PACKETS, *ORPHANED_DECISIONS)
RARE_PACES: Final = (1.5, 4.0)
RARE_SHARE: Final = 0.15  # of the seeds, for each kind
#: Of what comes at its moment only, and costs little.
OCCASION_SHARE: Final = 0.3
OFTEN: Final = ("unheard_handover", "lost_answer", *SUCCESSIONS)
SHARE, DISK_SHARE = 0.45, 0.35  # of the kinds that a seed draws
#: Kinds that find what is known and not mended yet.
GATED: Final[tuple[str, ...]] = ()
QUIET_SHARE: Final = 0.2  # of the seeds, whose disks and clocks are as they should be


async def storm(simulation: Simulation, only: Sequence[str] = (), kinds: Sequence[str] = ()) -> None:
    """The faults of one seed; with `only`, those of these kinds alone, and the others do not happen. With `kinds` they
    are drawn from these.
    """
    if kinds:
        named = {**FAULTS, **DISK_FAULTS, **RARE}
        await wave(simulation, simulation.random, named, list(kinds), PACES, only)
        return
    random, chance = simulation.random, simulation.chance
    drawn = [name for name in FAULTS if random.random() < SHARE] or [random.choice(list(FAULTS))]
    of_disks = [name for name in DISK_FAULTS if chance.random() < DISK_SHARE and name not in GATED]
    if chance.random() < QUIET_SHARE:
        of_disks = []
    async with asyncio.TaskGroup() as group:
        group.create_task(wave(simulation, random, FAULTS, drawn, PACES, only))
        group.create_task(wave(simulation, chance, DISK_FAULTS, of_disks, DISK_PACES, only))
        for what, fault in RARE.items():
            own = Random(f"{what} {simulation.seed}")
            if own.random() < share_of(what, simulation):
                group.create_task(wave(simulation, own, {what: fault}, [what], RARE_PACES, only))


def share_of(what: str, simulation: Simulation) -> float:
    """Return the share of the seeds that play this rare kind."""
    if what in OF_TRANSACTIONS:
        return OCCASION_SHARE if "coordinated" in simulation.shape.workloads else 0.0
    if what in ASKED_FOR:
        return 0.0
    return OCCASION_SHARE if what in OFTEN else RARE_SHARE


async def wave(
    simulation: Simulation,
    random: Random,
    faults: Mapping[str, Fault],
    kinds: list[str],
    paces: tuple[float, ...],
    only: Sequence[str],
) -> None:
    """Faults of these kinds, one after the other, until the time is over; what still lasts then ends."""
    weights = [random.uniform(0.2, 1.0) for _ in kinds]
    pace = random.choice(paces)
    simulation.say(f"faults: {', '.join(kinds)}, one in {pace} s")
    end = simulation.loop.time() + simulation.shape.seconds
    await asyncio.sleep(random.uniform(0, 1.5))
    tasks: list[asyncio.Task[None]] = []
    while kinds and simulation.loop.time() < end:
        name = random.choices(kinds, weights)[0]
        if not only or name in only:
            tasks.append(asyncio.create_task(inject(simulation, faults[name]), name=name))
        await asyncio.sleep(random.expovariate(1 / pace))
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


async def inject(simulation: Simulation, fault: Fault) -> None:
    await fault(simulation)
