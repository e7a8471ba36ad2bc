"""A partition that has no other replica, and nobody to ask."""

from kavka_broker.core.partition.isr_proposal import IsrChange
from kavka_broker.core.partition.leader import Contact
from kavka_broker.replica.leading.partition import Partition


class Alone:
    """The host of a partition that has no other replica."""

    lag_ms_max = 0.0
    hurries_high_watermark = False

    def contact(self, broker_id: int) -> Contact:
        del broker_id
        return Contact()

    def eligible(self, broker_id: int) -> int | None:
        del broker_id
        return None

    def propose(self, partition: Partition, change: IsrChange) -> None:
        raise AssertionError(f"{partition} proposes {change} and has nobody to ask")

    def sync(self, partition: Partition) -> None:
        partition.log.durability.sync_records()
        partition.synced()

    def damaged(self, partition: Partition) -> None:
        """Nobody has another copy."""

    def refused(self, partition: Partition) -> None:
        """No other directory has room for it."""
