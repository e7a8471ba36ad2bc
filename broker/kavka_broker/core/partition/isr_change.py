"""What a leader asks the controller about its in-sync replica set, and what it is told (AlterPartition, KIP-497).

Only the controller changes an ISR; the leader, who sees its followers, proposes. A proposal names the partition epoch
that it was made from, so that one made from an old state is refused, and the broker epoch of every member, so that
nobody is added who has restarted meanwhile (KIP-903).
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kavka_broker.protocol.errors import ErrorCode

UNKNOWN_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class InSyncMember:
    """A replica of the proposed set. The leader does not say its own epoch here: the request does."""

    broker_id: int
    broker_epoch: int = UNKNOWN_BROKER_EPOCH


@dataclass(frozen=True, slots=True)
class IsrChange:
    """A proposal for one partition."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[InSyncMember, ...]
    recovery_state: int = 0


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """What became of it. Without an error: the partition as the controller has it now."""

    error: ErrorCode
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class AlterIsr(Protocol):
    """Takes proposals to the controller: an answer each, in their order.

    Raises BrokerError where the request as a whole failed or nobody could be reached; the proposals are made again.
    """

    def __call__(self, changes: Sequence[IsrChange]) -> Awaitable[Sequence[IsrAnswer]]: ...
