"""A topic's part of a Metadata answer in the versions before 6, which know fewer errors (`KRaftMetadataCache`).

- A leader without the listener is LISTENER_NOT_FOUND from version 6 on, and LEADER_NOT_AVAILABLE before.
- Version 0 names no replica that is offline: such a partition has fewer of them, and is REPLICA_NOT_AVAILABLE.
"""

from typing import Final

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kavka_broker.request.topic_answers import PARTITION_COST

LISTENERS_FROM_VERSION: Final = 6


def topic_as_of(version: int, topic: MetadataResponseTopic, cost: Cost) -> Work[MetadataResponseTopic]:
    """Return the topic as this version shows it. The one given is shared, and stays as it is."""
    if version >= LISTENERS_FROM_VERSION:
        return topic
    partitions = []
    for partition in topic.partitions:
        partitions.append(_partition_as_of(version, partition))
        if cost.add(PARTITION_COST):
            yield
    return MetadataResponseTopic(topic.error_code, topic.name, topic.topic_id, topic.is_internal, partitions)


def _partition_as_of(version: int, shown: MetadataResponsePartition) -> MetadataResponsePartition:
    error, offline = shown.error_code, set(shown.offline_replicas) if version == 0 else set()
    if error == ErrorCode.LISTENER_NOT_FOUND:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    if error == ErrorCode.NONE and offline:
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=shown.partition_index,
        leader_id=shown.leader_id,
        leader_epoch=shown.leader_epoch,
        replica_nodes=[replica for replica in shown.replica_nodes if replica not in offline],
        isr_nodes=[replica for replica in shown.isr_nodes if replica not in offline],
        offline_replicas=shown.offline_replicas,
    )
