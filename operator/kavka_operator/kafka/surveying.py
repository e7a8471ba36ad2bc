"""What a roll has to know of a cluster, from the answers of Metadata, DescribeConfigs and DescribeQuorum."""

from collections.abc import Mapping
from typing import Any

from kavka_operator.domain.seen import SeenPartition, SeenQuorum

IN_SYNC_MIN = "min.insync.replicas"
METADATA_TOPIC = "__cluster_metadata"


def partitions_of(metadata: Any, in_sync_min: Mapping[str, int]) -> tuple[SeenPartition, ...]:
    """Every partition, by name. `in_sync_min` lacks a topic that was deleted between two answers."""
    return tuple(
        SeenPartition(
            topic=topic.name,
            index=partition.partition_index,
            leader=partition.leader_id if partition.leader_id >= 0 else None,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
            in_sync_min=in_sync_min.get(topic.name, 1),
        )
        for topic in sorted(metadata.topics, key=lambda topic: topic.name)
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
        if not topic.error_code and partition.replica_nodes
    )


def quorum_of(partition: Any) -> SeenQuorum:
    """The controllers, from the description of the metadata partition.

    Times are those of the leader's clock; the newest of them is its now, so that ours does not matter.
    """
    times = {voter.replica_id: voter.last_caught_up_timestamp for voter in partition.current_voters}
    now_ms = max([0, *times.values(), *(voter.last_fetch_timestamp for voter in partition.current_voters)])
    return SeenQuorum(
        leader=partition.leader_id if partition.leader_id >= 0 else None,
        voters=tuple(sorted(times)),
        behind_ms={voter: now_ms - time_ms if time_ms > 0 else None for voter, time_ms in times.items()},
    )
