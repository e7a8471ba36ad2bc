"""Packets of transactions that arrive late: an EndTxn, a batch, and a coordinator's verdict on a batch.

An EndTxn arrives when its transaction is long over: its client has sent it again on another connection.

The packet of a connection that the client has given up is on a long way. Meanwhile the transaction has ended, and the
next one of the same producer is open. Transaction version 1 gives both one epoch, so the coordinator cannot tell: it
ends the next one half-way (Jepsen, Bufstream, 2024). Version 2 has an epoch for each transaction (KIP-890). For version
1 a coordinator looks at the connection, which tells where it has not moved meanwhile. Seeds with `coordinated` draw
this too, and there the judge allows what may become of the transactions of version 1 that it meets (`Record.excuse`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from tests.sim.faults import Fault, begin
from tests.sim.holds import Hold
from tests.sim.occasions import occasion_random
from tests.sim.recorded import Record, Written, has_one_epoch
from tests.sim.reigns import until

Simulation = Any

END_TXN: Final = EndTxnRequest.API_KEY
PRODUCE: Final = ProduceRequest.API_KEY
SENT_SECONDS_MAX: Final = 8.0
NEXT_SECONDS_MAX: Final = 20.0
LOOK_SECONDS: Final = 0.02
AFTERWARDS_SECONDS: Final = (0.0, 0.3, 2.0)
VERDICT_SECONDS: Final = (1.0, 9.0)  # a producer waits for three, gives its batch up, and aborts


async def late_end(simulation: Simulation) -> None:
    """See above."""
    random, network = occasion_random(simulation, "late_end"), simulation.network
    producer = some_producer(simulation, random)
    if producer is None:
        return
    async with held(simulation, producer, END_TXN) as hold:
        if hold.pipes:
            sender = hold.pipes[0].source.process.name
            begin(simulation, "late_end", f"of {sender}")
            network.reset_senders(hold)  # otherwise it waits so long for an answer that its transaction times out
            await until_the_next(simulation, producer.record, sender, lambda: let_go(simulation, hold))


async def late_write(simulation: Simulation) -> None:
    """A batch arrives when its producer has given it up, and its transaction is over."""
    random, network = occasion_random(simulation, "late_write"), simulation.network
    producer = some_producer(simulation, random)
    if producer is None:
        return
    async with held(simulation, producer, PRODUCE) as hold:
        written = present(producer.record, hold.pipes[0].source.process.name) if hold.pipes else None
        if written is None:
            return
        begin(simulation, "late_write", f"of {written.process}")
        network.reset_senders(hold)
        if await until(simulation, lambda: written.ended is not None, NEXT_SECONDS_MAX, look_seconds=LOOK_SECONDS):
            await asyncio.sleep(random.choice(AFTERWARDS_SECONDS))
            let_go(simulation, hold)


async def late_verdict(simulation: Simulation) -> None:
    """A partition's leader hears late from the coordinator whether the partition is in a transaction."""
    random, network = occasion_random(simulation, "late_verdict"), simulation.network
    serving = [node for node in simulation.nodes if node.is_serving and node.host not in network.holds]
    coordinators = [node for node in serving if any(True for _ in node.broker.transactions.shards())]
    if len(serving) < 2 or not coordinators:
        return
    coordinator = random.choice(coordinators)
    leader = random.choice([node for node in serving if node is not coordinator])
    begin(simulation, "late_verdict", f"of {coordinator.host} to {leader.host}")
    hold = network.hold_answers(coordinator.host, leader.host)
    try:
        await asyncio.sleep(random.uniform(*VERDICT_SECONDS))
    finally:
        if network.holds.get(coordinator.host) is hold:
            network.hold_no_more(coordinator.host)
        network.release(hold)


def some_producer(simulation: Simulation, random: Random) -> Any:
    """A transactional producer of whose host nothing is held yet; None where there is none."""
    workload = next((workload for workload in simulation.workloads if hasattr(workload, "transactional")), None)
    known = [] if workload is None else workload.transactional
    producers = [producer for producer in known if producer.process.host not in simulation.network.holds]
    return random.choice(producers) if producers else None


@asynccontextmanager
async def held(simulation: Simulation, producer: Any, api_key: int) -> AsyncIterator[Hold]:
    """Hold the next requests of this kind that the producer's host sends; what is not let go is lost."""
    network, host = simulation.network, producer.process.host
    hold = network.hold(host, api_key)
    try:
        await until(simulation, lambda: hold.pipes, SENT_SECONDS_MAX, look_seconds=LOOK_SECONDS)
        network.hold_no_more(host)
        yield hold
    finally:
        if network.holds.get(host) is hold:
            network.hold_no_more(host)
        network.reset(hold)


def let_go(simulation: Simulation, hold: Hold) -> None:
    """What is held arrives."""
    simulation.network.release_requests(hold)
    hold.pipes.clear()


async def until_the_next(simulation: Simulation, record: Record, sender: str, then: Callable[[], None]) -> None:
    """Do it when the next transaction of this producer has its first values, before the producer goes on; or never."""
    ending, is_done = present(record, sender), simulation.loop.create_future()

    def acknowledged(written: Written) -> None:
        if written.process == sender and written is not ending and not is_done.done():
            if ending is not None and has_one_epoch(ending, written):
                record.excuse(written)
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


LATE_PACKETS: Final[dict[str, Fault]] = {
    "late_end": late_end,
    "late_write": late_write,
    "late_verdict": late_verdict,
}
