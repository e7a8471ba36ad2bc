"""What a partition asks of the broker that it is on, and tells it."""

from typing import TYPE_CHECKING, Protocol

from kavka_broker.core.partition.isr_change import IsrChange
from kavka_broker.core.partition.leader import Contact

if TYPE_CHECKING:
    from kavka_broker.replica.partition import Partition


class Surroundings(Protocol):
    """What a partition asks of the broker that it is on."""

    lag_ms_max: float
    # Followers serve consumers: they shall hear of a new high watermark at once, not with the next records.
    hurries_high_watermark: bool

    def contact(self, broker_id: int) -> Contact: ...

    def eligible(self, broker_id: int) -> int | None:
        """The epoch of a broker that may be in sync; None where it may not."""
        ...

    def propose(self, partition: "Partition", change: IsrChange) -> None:
        """Take a proposal to the controller; `partition.settled` gets its answer."""
        ...

    def sync(self, partition: "Partition") -> None:
        """Its log awaits a sync; `partition.synced` is told when there was one."""
        ...

    def damaged(self, partition: "Partition") -> None:
        """A batch of the log has changed on the disk, or cannot be read."""
        ...

    def refused(self, partition: "Partition") -> None:
        """The disk has refused to take records."""
        ...


class Alone:
    """The surroundings of a partition that has no other replica."""

    lag_ms_max = 0.0
    hurries_high_watermark = False

    def contact(self, broker_id: int) -> Contact:
        del broker_id
        return Contact()

    def eligible(self, broker_id: int) -> int | None:
        del broker_id
        return None

    def propose(self, partition: "Partition", change: IsrChange) -> None:
        raise AssertionError(f"{partition} proposes {change} and has nobody to ask")

    def sync(self, partition: "Partition") -> None:
        partition.log.sync_records()
        partition.synced()

    def damaged(self, partition: "Partition") -> None:
        """Nobody has another copy."""

    def refused(self, partition: "Partition") -> None:
        """Nobody else has room for it."""
