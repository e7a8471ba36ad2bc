"""Transactional ids that have used up nearly all of their epochs, as after 32,000 transactions.

Each is written as its coordinator would have written it, in the coordinator's own process: no seed is long enough for a
producer to come so far. From here on a few transactions, or fences, bring an id to the end of its epochs (KIP-360,
KIP-890).
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kavka_broker.core.transaction.state import Standing, Transaction, TransactionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from tests.sim.clients import Admin
from tests.sim.history import History
from tests.sim.loop import Ended

Simulation = Any

TRANSACTION_KEY: Final = 1
TRIES_MAX: Final = 50
LOOK_SECONDS: Final = 0.2


async def age_ids(simulation: Simulation, epochs: Mapping[str, int], timeout_ms: int) -> None:
    """Bring ids that nobody has used yet to these epochs; those whose coordinator is never there stay new."""
    client = Admin("ages ids", simulation.loop, simulation.addresses, History())
    for transactional_id, epoch in epochs.items():
        for _ in range(TRIES_MAX):
            request = FindCoordinatorRequest("", TRANSACTION_KEY, [transactional_id])
            found = await client.ask_any(request, FindCoordinatorResponse)
            if isinstance(found, FindCoordinatorResponse) and not found.coordinators[0].error_code:
                node = simulation.nodes[found.coordinators[0].node_id - 1]
                work = aged(node, transactional_id, epoch, timeout_ms)
                if node.is_serving and await simulation.loop.create_task(work, context=node.process.context()):
                    break
            await asyncio.sleep(LOOK_SECONDS)


async def aged(node: Any, transactional_id: str, epoch: int, timeout_ms: int) -> bool:
    """Whether this node coordinates the id, and has written it down with this epoch."""
    coordinator = node.broker.transactions
    try:
        producer_id = await node.broker.producer_ids.next()
        shard = coordinator.shard(transactional_id)
        if transactional_id in shard.transactions:
            return True
        now_ms = node.clock.now_ms()
        before = Standing(producer_id, epoch - 1, timeout_ms, updated_ms=now_ms)
        transaction: Transaction = shard.admit(transactional_id, before)
        try:
            await shard.move(transaction, before.then(TransactionState.EMPTY, producer_epoch=epoch))
        except BrokerError as error:
            if error.code != ErrorCode.COORDINATOR_NOT_AVAILABLE:  # otherwise it is not known yet
                shard.transactions.pop(transactional_id, None)
            return False
    except (BrokerError, Ended):
        return False
    return True
