"""What a leader asks the controller about its in-sync replica set, and what it is told (AlterPartition, KIP-497).

Only the controller changes an ISR; the leader, which sees its followers, proposes. A proposal names the partition epoch
that it was made from, so that one made from an old state is refused, and the broker epoch of every member, so that
no broker is added that has restarted meanwhile (KIP-903).
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kavka_broker.protocol.errors import ErrorCode

UNKNOWN_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class InSyncMember:
    """A replica of the proposed ISR. The leader's own epoch is not in it: the request carries that."""

    broker_id: int
    broker_epoch: int = UNKNOWN_BROKER_EPOCH


@dataclass(frozen=True, slots=True)
class IsrChange:
    """A proposed ISR of one partition."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[InSyncMember, ...]
    recovery_state: int = 0


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """The answer to a proposal. Without an error: the partition as the controller has it now."""

    error: ErrorCode
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class AlterIsr(Protocol):
    """Take proposals to the controller: an answer for each, in their order.

    Raises BrokerError where the request as a whole failed or no controller was reached; proposals are made again.
    """

    def __call__(self, changes: Sequence[IsrChange]) -> Awaitable[Sequence[IsrAnswer]]: ...
