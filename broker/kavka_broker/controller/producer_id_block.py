"""The producer ids that this broker may give out: a block from the controller, the next one when it is used up."""

import asyncio
from collections.abc import Awaitable, Callable

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image import Metadata
from kavka_broker.core.metadata.producer_ids import Block

Submit = Callable[[Callable[[Metadata, int], Decision[Block]]], Awaitable[Block]]


class ProducerIdBlock:
    """Gives each id once. A block that is lost in a crash is not given again."""

    def __init__(self, submit: Submit, node_id: int) -> None:
        self._submit = submit
        self._node_id = node_id
        self._ids = iter(range(0))
        self._lock = asyncio.Lock()

    def next_at_hand(self) -> int | None:
        """An id, or None where the controller has to be asked."""
        return next(self._ids, None)

    async def next(self) -> int:
        """An id; waits for a new block where the last is used up. One request for a block serves all who wait."""
        async with self._lock:
            while (producer_id := self.next_at_hand()) is None:
                block = await self._submit(self._allocate)
                self._ids = iter(range(block.first, block.first + block.size))
        return producer_id

    def _allocate(self, metadata: Metadata, _: int) -> Decision[Block]:
        registration = metadata.brokers.get(self._node_id)
        epoch = -1 if registration is None else registration.epoch
        return metadata.producer_ids.allocate(self._node_id, epoch)
