"""A process that has no free file descriptor for a while. No disk has failed, so nothing may be given up for it."""

import asyncio
import errno
from typing import Any, Final

from tests.sim.faults import Fault, allow, begin
from tests.sim.node import Node
from tests.support.sim_disk import DiskError

Simulation = Any

SECONDS: Final = (0.05, 0.5, 3.0)


async def out_of_files(simulation: Simulation) -> None:
    """Files cannot be opened to be written or synced; those that are open work."""
    chance = simulation.chance
    node: Node = chance.choice(simulation.nodes)
    is_safe = node.is_serving and not node.is_disk_faulty and simulation.may_end(node)
    if not allow(simulation, "out_of_files", is_safe):
        return
    begin(simulation, "out_of_files", node.host)
    others, process = simulation.faults.total(), node.process
    error = DiskError(frozenset({"sync"}), "", errno.EMFILE)
    node.disk.errors = [*node.disk.errors, error]
    await asyncio.sleep(chance.choice(SECONDS))
    node.disk.errors = [other for other in node.disk.errors if other is not error]
    if others == simulation.faults.total() and process is node.process and node.has_failed_logs:
        simulation.fail(f"OutOfFilesCostsNoDirectory: {node.host} has given one up")


DESCRIPTOR_FAULTS: Final[dict[str, Fault]] = {"out_of_files": out_of_files}
