"""Counts what happens to the cluster, from the records that say so.

What the controller decides reaches every node as committed records, so nobody has to report it. Elections are counted
by each node for the whole cluster; changes of in-sync sets by the broker that leads the partition.
"""

from collections.abc import Iterable

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import RECOVERING
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions


class ClusterCounts:
    """Plain counts since the start of this node."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self.isr_shrinks = self.isr_expands = 0
        self.elections = self.unclean_elections = 0

    def count(self, records: Iterable[Message], partitions: HostedPartitions | None) -> None:
        """Count these records; `partitions` stand where they stood before them."""
        for record in records:
            if type(record) is PartitionChangeRecord:
                self._count_election(record)
                if record.isr is not None and partitions is not None:
                    self._count_isr(record, len(record.isr), partitions)

    def _count_election(self, record: PartitionChangeRecord) -> None:
        if record.leader >= 0:
            self.elections += 1
            # Only a leader that may lack records has to recover (KIP-704).
            self.unclean_elections += record.leader_recovery_state == RECOVERING

    def _count_isr(self, record: PartitionChangeRecord, size: int, partitions: HostedPartitions) -> None:
        topic = self._metadata.topics.by_id(record.topic_id)
        partition = None if topic is None else partitions.get(topic.name, record.partition_id)
        if partition is not None and partition.is_leader:
            before = len(partition.state.isr)
            self.isr_shrinks += size < before
            self.isr_expands += size > before
