"""The partitions of this broker by topic and index, as requests look for them."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.hosting.replica_changes import Place
from kavka_broker.replica.leading.partition import Partition

NOTHING: Final[Mapping[int, Partition]] = MappingProxyType({})


class HostedPartitions:
    """The replicas of broker `node_id`, of those that the image places on it. `is_opening` says whether a partition
    that is not here will be in a moment.
    """

    def __init__(self, node_id: int, metadata: Metadata, is_opening: Callable[[Place], bool]) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._is_opening = is_opening
        self.by_topic: dict[str, dict[int, Partition]] = {}
        self._names: dict[bytes, str] = {}  # by topic id

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self.by_topic.values():
            yield from partitions.values()

    def get(self, topic: str, index: int) -> Partition | None:
        return self.by_topic.get(topic, NOTHING).get(index)

    def of_topic(self, topic: str) -> Mapping[int, Partition]:
        """Return the topic's partitions by index."""
        return self.by_topic.get(topic, NOTHING)

    def topics(self) -> list[str]:
        """Return the names of the topics of which there are partitions."""
        return list(self.by_topic)

    def leader(self, topic: str, index: int, leader_epoch: int = -1) -> Partition:
        """Return the partition, led by this broker. Raises UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER; for a
        client's other leader epoch than a replica here knows, what `Partition.check_epoch` raises.
        """
        partitions = self.by_topic.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is not None and partition.is_leader:
            if leader_epoch != -1:
                partition.check_epoch(leader_epoch)
            return partition
        if partition is not None:
            partition.check_epoch(leader_epoch)
        raise self._not_leading(topic, index, partition)

    def replica(self, topic: str, index: int, leader_epoch: int = -1) -> Partition:
        """Return the partition, whichever broker leads it (KIP-392). Raises as `leader` where no replica is here."""
        partition = self.get(topic, index)
        if partition is None or (not partition.is_leader and partition.state.leader < 0):
            raise self._not_leading(topic, index, partition)
        if leader_epoch != -1:
            partition.check_epoch(leader_epoch)
        return partition

    def is_placed(self, topic: str, index: int) -> bool:
        """Whether the controller wants a replica of the partition here."""
        known = self._metadata.topics.get(topic)
        return known is not None and index in known.partitions and self._node_id in known.partitions[index].replicas

    @property
    def has_leaderless(self) -> bool:
        """Whether a partition that is placed here has no leader."""
        return any(partition.state.leader < 0 for partition in self)

    # --- the replica manager's ----------------------------------------------------------------------------------

    def add(self, partition: Partition) -> None:
        self.by_topic.setdefault(partition.topic, {})[partition.index] = partition
        self._names[partition.topic_id] = partition.topic

    def remove(self, partition: Partition) -> None:
        partitions = self.by_topic[partition.topic]
        del partitions[partition.index]
        if not partitions:
            del self.by_topic[partition.topic]
            del self._names[partition.topic_id]

    def remove_topic(self, topic_id: bytes) -> tuple[str, dict[int, Partition]] | None:
        """Remove the topic's partitions; returns its name and them, None where nothing of it is here."""
        name = self._names.pop(topic_id, None)
        return None if name is None else (name, self.by_topic.pop(name))

    def _not_leading(self, topic: str, index: int, partition: Partition | None) -> BrokerError:
        known = self._metadata.topics.get(topic)
        if known is None or index not in known.partitions:
            return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        is_missing = partition is None and self.is_placed(topic, index)
        if is_missing and not self._is_opening((known.topic_id, index)):
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)
        return BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
