"""A coordinator of transactions dies when it has decided one, and not all of its markers are written.

Its marker requests to other brokers are held back. Those of partitions that it leads itself may be written, so that
half of the transaction is marked. It dies; what it had sent is lost, or comes late. The next coordinator has the
decision in its log and has to carry it out. Markers that come late may come within the next transaction of the id.
"""

import asyncio
from typing import Any, Final

from kavka_broker.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from tests.sim.faults import Fault, allow, begin, restart
from tests.sim.occasions import occasion_random
from tests.sim.recorded import Written
from tests.sim.reigns import until

Simulation = Any

MARKERS: Final = WriteTxnMarkersRequest.API_KEY
DECIDED_SECONDS_MAX: Final = 8.0
LOOK_SECONDS: Final = 0.005
DYING_SECONDS: Final = (0.0, 0.02, 0.5)  # markers that are not held back are written meanwhile, or not
LATE_SECONDS: Final = (0.5, 5.0)
NEXT_SECONDS_MAX: Final = 15.0


async def orphaned_decision(simulation: Simulation) -> None:
    """See above."""
    random, network = occasion_random(simulation, "orphaned_decision"), simulation.network
    serving = [node for node in simulation.nodes if node.is_serving and node.host not in network.holds]
    coordinators = [node for node in serving if any(True for _ in node.broker.transactions.shards())]
    if not coordinators:
        return
    node = random.choice(coordinators)
    hold = network.hold(node.host, MARKERS)
    try:
        is_held = await until(simulation, lambda: hold.pipes, DECIDED_SECONDS_MAX, look_seconds=LOOK_SECONDS)
        network.hold_no_more(node.host)
        await asyncio.sleep(random.choice(DYING_SECONDS))
        if not (is_held and node.is_alive and allow(simulation, "orphaned_decision", simulation.may_end(node))):
            return
        begin(simulation, "orphaned_decision", node.host)
        orphaned, killed_at = decided_of(node), simulation.loop.time()
        node.kill()
        if random.random() < 0.5:
            network.reset(hold)
        elif random.random() < 0.7:
            await until_the_next_of(simulation, orphaned, killed_at)
            network.release(hold)
        await restart(simulation, node)
        await asyncio.sleep(random.uniform(*LATE_SECONDS))
    finally:
        if network.holds.get(node.host) is hold:
            network.hold_no_more(node.host)
        network.release(hold)


def decided_of(node: Any) -> list[str]:
    """The ids of transactions that this node has decided, and whose markers are not all written."""
    return [
        transaction.transactional_id
        for shard in node.broker.transactions.shards()
        for transaction in shard.transactions.values()
        if transaction.standing.state.is_prepared
    ]


async def until_the_next_of(simulation: Simulation, transactional_ids: list[str], began_after: float) -> None:
    """Wait until one of these ids has the first values of another transaction; or for a while."""
    records = [workload.record for workload in simulation.workloads if hasattr(workload, "transactional")]
    is_there = simulation.loop.create_future()

    def acknowledged(written: Written) -> None:
        if written.transactional_id in transactional_ids and written.began > began_after and not is_there.done():
            is_there.set_result(None)

    for record in records:
        record.listeners.append(acknowledged)
    try:
        async with asyncio.timeout(NEXT_SECONDS_MAX):
            await is_there
    except TimeoutError:
        pass
    finally:
        for record in records:
            record.listeners.remove(acknowledged)


ORPHANED_DECISIONS: Final[dict[str, Fault]] = {"orphaned_decision": orphaned_decision}
