"""An EndTxn that arrives when its transaction is long over: its client has sent it again on another connection.

The packet of a connection that the client has given up is on a long way. Meanwhile the transaction has ended, and the
next one of the same producer is open. Transaction version 1 gives both one epoch, so the coordinator cannot tell: it
ends the next one half-way (Jepsen, Bufstream, 2024). Version 2 has an epoch for each transaction (KIP-890). For version
1 a coordinator looks at the connection, which tells where it has not moved meanwhile: tests alone ask for this.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from tests.sim.faults import Fault, begin
from tests.sim.occasions import occasion_random
from tests.sim.recorded import Record, Written
from tests.sim.reigns import until

Simulation = Any

END_TXN: Final = EndTxnRequest.API_KEY
SENT_SECONDS_MAX: Final = 8.0
NEXT_SECONDS_MAX: Final = 20.0
LOOK_SECONDS: Final = 0.02


async def late_end(simulation: Simulation) -> None:
    """See above."""
    random, network = occasion_random(simulation, "late_end"), simulation.network
    workload = next((workload for workload in simulation.workloads if hasattr(workload, "transactional")), None)
    known = [] if workload is None else workload.transactional
    producers = [producer for producer in known if producer.process.host not in network.holds]
    if not producers:
        return
    producer = random.choice(producers)
    hold = network.hold(producer.process.host, END_TXN)
    try:
        if not await until(simulation, lambda: hold.pipes, SENT_SECONDS_MAX, look_seconds=LOOK_SECONDS):
            return
        network.hold_no_more(producer.process.host)
        sender = hold.pipes[0].source.process.name
        begin(simulation, "late_end", f"of {sender}")
        network.reset_senders(hold)  # otherwise it waits so long for an answer that its transaction times out
        await until_the_next(simulation, producer.record, sender, lambda: network.release_requests(hold))
    finally:
        if network.holds.get(producer.process.host) is hold:
            network.hold_no_more(producer.process.host)
        network.release(hold)


async def until_the_next(simulation: Simulation, record: Record, sender: str, then: Callable[[], None]) -> None:
    """Do it when the next transaction of this producer has its first values, before the producer goes on; or never."""
    ending, is_done = present(record, sender), simulation.loop.create_future()

    def acknowledged(written: Written) -> None:
        if written.process == sender and written is not ending and not is_done.done():
            then()
            is_done.set_result(None)

    record.listeners.append(acknowledged)
    try:
        async with asyncio.timeout(NEXT_SECONDS_MAX):
            await is_done
    except TimeoutError:
        pass
    finally:
        record.listeners.remove(acknowledged)


def present(record: Record, process: str) -> Written | None:
    """The last transaction that a producer has begun."""
    own = [written for written in record.transactions if written.process == process]
    return max(own, key=lambda written: written.began, default=None)


LATE_ENDS: Final[dict[str, Fault]] = {"late_end": late_end}
