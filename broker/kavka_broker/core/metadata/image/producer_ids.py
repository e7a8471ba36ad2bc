"""Producer ids: given out by the cluster in blocks, so that a broker asks once in a thousand producers.

A block is never given twice. What a broker has not used of its block when it stops is lost, which is harmless: there
are 2^63 of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.producer_ids_record import ProducerIdsRecord

BLOCK_SIZE: Final = 1000
PRODUCER_ID_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Block:
    """The ids from `first` to `first + size - 1`."""

    first: int
    size: int


class ProducerIds:
    """The first id that nobody has been given."""

    def __init__(self) -> None:
        self.next_producer_id = 0
        self._last: ProducerIdsRecord | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerIds) and self._last == other._last

    __hash__ = None  # type: ignore[assignment]

    def allocate(self, broker_id: int, broker_epoch: int) -> Decision[Block]:
        """The next block, for one broker."""
        first = self.next_producer_id
        if first > PRODUCER_ID_MAX - BLOCK_SIZE:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "every producer id has been given out")
        return Decision([ProducerIdsRecord(broker_id, broker_epoch, first + BLOCK_SIZE)], Block(first, BLOCK_SIZE))

    def replay(self, record: ProducerIdsRecord) -> None:
        assert record.next_producer_id >= self.next_producer_id, "producer ids would be given out twice"
        self.next_producer_id = record.next_producer_id
        self._last = record

    def records(self) -> Iterator[ProducerIdsRecord]:
        if self._last is not None:
            yield self._last
