"""What a partition asks of the broker that it is on, and tells it."""

from typing import Protocol, TypeVar

from kavka_broker.core.partition.isr_proposal import IsrChange
from kavka_broker.core.partition.leader import Contact

P_contra = TypeVar("P_contra", contravariant=True)


class PartitionHost(Protocol[P_contra]):
    """The broker, as a partition sees it."""

    lag_ms_max: float
    # Followers serve consumers, which should learn of a new high watermark now, not with the next records.
    hurries_high_watermark: bool

    def contact(self, broker_id: int) -> Contact: ...

    def eligible(self, broker_id: int) -> int | None:
        """Return the epoch of a broker that may be in sync; None where it may not."""
        ...

    def propose(self, partition: P_contra, change: IsrChange) -> None:
        """Take a proposal to the controller; `partition.isr_answered` gets its answer."""
        ...

    def sync(self, partition: P_contra) -> None:
        """Sync the partition's log; `partition.synced` is called when that is done."""
        ...

    def damaged(self, partition: P_contra) -> None:
        """Handle a batch of the log that has changed on the disk, or cannot be read."""
        ...

    def refused(self, partition: P_contra) -> None:
        """Handle a disk that has refused to take records."""
        ...
