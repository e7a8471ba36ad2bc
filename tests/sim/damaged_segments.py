"""What a medium does to whole segments of a node that is down: a `.log` that is gone, or has another log's content.

Others have all of it, as with the damage of `damage`. It happens after a clean stop only: after a crash nothing tells
that a segment is gone which was never synced, or that another log's file of the same layout stands for the last one.
"""

from random import Random
from typing import Any, Final

from kavka_broker.storage.file_names import LOG
from tests.sim.damage import inode_at
from tests.sim.disk_faults import start_again
from tests.sim.faults import Fault, allow, begin
from tests.sim.history import Place
from tests.sim.node import Node

Simulation = Any

GONE_SHARE: Final = 0.5


def segments(node: Node, places: list[Place]) -> list[str]:
    """Paths of all segments that have something in them, the first of each log first."""
    return [
        f"{directory}/{name}"
        for place, directory, files in node.logs()
        if place in places
        for name in sorted(files)
        if name.endswith(LOG) and files[name].data
    ]


def spoil_segment(node: Node, chance: Random, places: list[Place]) -> str | None:
    """Take one away, or put another's content into it; what was done, or None."""
    found = segments(node, places)
    if not found:
        return None
    path = chance.choice(found)
    others = [other for other in found if other.rpartition("/")[0] != path.rpartition("/")[0]]
    is_gone = chance.random() < GONE_SHARE or not others
    other = None if is_gone else chance.choice(others)
    node.disk.overwrite(path, None if other is None else bytes(inode_at(node, other).data))
    return f"{node.host}:{path}: " + ("gone" if other is None else f"as {other}")


async def damaged_segments(simulation: Simulation) -> None:
    """A whole segment changes while its node is down. Others have it all."""
    chance = simulation.chance
    node: Node = chance.choice(simulation.nodes)
    if not node.is_serving or node.is_damaged:
        return
    if not allow(simulation, "damaged_segments", simulation.may_lose_records(node)):
        return
    await node.stop("a roll")
    if node.is_clean and not node.is_alive and simulation.may_lose_records(node):
        where = spoil_segment(node, chance, simulation.places)
        if where is not None:
            begin(simulation, "damaged_segments", where)
            simulation.invariants.was_damaged(node)
    await start_again(simulation, node)


SEGMENT_FAULTS: Final[dict[str, Fault]] = {"damaged_segments": damaged_segments}
