"""Ids for producers: each is given once in the whole cluster.

The controller hands out blocks (AllocateProducerIds), so that a new producer seldom costs a decision. What is left of a
block when the process ends is lost, and there are 2^63 ids.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kavka_broker.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

#: Shorter than a client's request timeout: the client is told to try again, instead of giving up on the broker.
ALLOCATE_MS_MAX: Final = 10_000


class ProducerIds:
    """The ids of this broker's block, and the next block when they are used up."""

    def __init__(self, channel: ControllerChannel, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._ids = iter(range(0))
        self._lock = asyncio.Lock()

    def next_at_hand(self) -> int | None:
        """A producer id, or None where the controller has to be asked."""
        return next(self._ids, None)

    async def next(self) -> int:
        """A producer id; waits for a new block where the last is used up. One request serves all waiting callers.

        Raises COORDINATOR_LOAD_IN_PROGRESS, on which every client tries again, where there is no block to be had.
        """
        async with self._lock:
            while (producer_id := self.next_at_hand()) is None:
                await self._allocate()
        return producer_id

    async def _allocate(self) -> None:
        request = AllocateProducerIdsRequest(self._node_id, self._broker_epoch())
        try:
            answer = await self._channel.ask(request, AllocateProducerIdsResponse, timeout_ms=ALLOCATE_MS_MAX)
        except Unreachable as problem:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(problem)) from problem
        if answer.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode(answer.error_code).name)
        self._ids = iter(range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len))
