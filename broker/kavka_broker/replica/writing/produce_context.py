"""The parts of a broker that every Produce uses."""

from collections.abc import Sequence
from typing import Protocol

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.interfaces import Clock
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.slices import Slices
from kavka_broker.loop.timers import Timers
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.writing.batch_preparation import Preparation


class Coordinators(Protocol):
    """The coordinators of transactions. One that is busy with the end of the transaction before is to be asked again
    after `again_ms`, `attempts_max` times in all: that end is a matter of milliseconds.
    """

    again_ms: int
    attempts_max: int
    turns: ExclusiveTurns  # requests of one transactional id go one by one

    @property
    def verifies(self) -> bool:
        """Whether a partition that a client has added is looked for at the coordinator."""

    async def admit(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: Sequence[tuple[str, int]],
        *,
        adds: bool,
    ) -> dict[tuple[str, int], int]:
        """Return the coordinator's error code for each partition. Raises BrokerError."""

    def verified_here(
        self, transactional_id: str, producer: tuple[int, int], places: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], int] | None:
        """Return the error code for each partition that a client has added; None where this broker does not know."""


class Writes:
    """The parts that a request is written with."""

    __slots__ = ("clock", "coordinators", "metadata", "openings", "partitions", "preparation", "slices", "timers")

    def __init__(
        self,
        replicas: ReplicaManager,
        coordinators: Coordinators,
        metadata: Metadata,
        slices: Slices,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.partitions = replicas.partitions
        self.openings = replicas.openings
        self.coordinators = coordinators
        self.metadata = metadata
        self.slices = slices
        self.clock = clock
        self.timers = timers
        self.preparation = Preparation(slices)
