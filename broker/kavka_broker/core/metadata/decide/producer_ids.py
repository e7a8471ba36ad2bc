"""Blocks of producer ids are given to brokers."""

from dataclasses import dataclass
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.producer_ids import ProducerIds
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.producer_ids_record import ProducerIdsRecord

BLOCK_SIZE: Final = 1000
PRODUCER_ID_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Block:
    """The ids from `first` to `first + size - 1`."""

    first: int
    size: int

    def __post_init__(self) -> None:
        assert self.first >= 0, self
        assert self.size >= 1, self


def allocate(producer_ids: ProducerIds, broker_id: int, broker_epoch: int) -> Decision[Block]:
    """Allocate the next block of ids to one broker. Raises BrokerError."""
    first = producer_ids.next_producer_id
    assert first >= 0, first
    if first > PRODUCER_ID_MAX - BLOCK_SIZE:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "every producer id has been given out")
    return Decision([ProducerIdsRecord(broker_id, broker_epoch, first + BLOCK_SIZE)], Block(first, BLOCK_SIZE))
