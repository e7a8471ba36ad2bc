"""What a roll has to know of a cluster, from the answers of Metadata, DescribeConfigs and DescribeQuorum.

A broker that is cut off from the controllers goes on answering, with the in-sync replicas of the time before. So one is
asked that the active controller has just told to be level with it, and it is asked for that again afterwards.
"""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from kavka_operator.domain.name_lists import counted
from kavka_operator.domain.observed import SeenObserver, SeenPartition, SeenQuorum
from kavka_operator.kafka.topic_ids import text_of

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
    voters = {voter.replica_id: voter for voter in partition.current_voters}
    told = [*partition.current_voters, *partition.observers]
    times = [(replica.last_caught_up_timestamp, replica.last_fetch_timestamp) for replica in told]
    now_ms = max([0, *(moment for pair in times for moment in pair)])
    end = max([0, *(replica.log_end_offset for replica in told)])
    return SeenQuorum(
        leader=partition.leader_id if partition.leader_id >= 0 else None,
        voters=tuple(sorted(voters)),
        behind_ms={number: _behind_ms(voter, now_ms) for number, voter in voters.items()},
        directories={number: found for number, voter in voters.items() if (found := _directory(voter))},
        observers=tuple(
            SeenObserver(
                replica.replica_id, _directory(replica), _behind_ms(replica, now_ms), end - replica.log_end_offset
            )
            for replica in partition.observers
        ),
    )


def _behind_ms(replica: Any, now_ms: int) -> int | None:
    time_ms: int = replica.last_caught_up_timestamp
    return now_ms - time_ms if time_ms > 0 else None


def _directory(replica: Any) -> str:
    """The id of a replica's directory; empty where there is none, as with voters that never change."""
    directory: UUID | None = replica.replica_directory_id
    return text_of(directory) if directory is not None and directory.int else ""


def teller_of(quorum: SeenQuorum, brokers: Collection[int]) -> int | None:
    """The broker to believe: one that keeps up with an active controller which has a majority behind it."""
    if doubt_about(quorum):
        return None
    level = {number for number in quorum.voters if quorum.is_caught_up(number)}
    level |= {observer.id for observer in quorum.observers if observer.is_caught_up}
    return min(level & set(brokers), default=None)


def doubt_about(quorum: SeenQuorum) -> str:
    """The reason why no broker's answer can be believed; empty if it can.

    An active controller that is cut off from the others leads on for a moment, and does not know that it is none.
    """
    if quorum.leader is None:
        return "there is no active controller"
    level = sum(quorum.is_caught_up(voter) for voter in quorum.voters)
    if level < len(quorum.voters) // 2 + 1:
        return f"only {level} of {counted(len(quorum.voters), 'controller')} keep up with the active one"
    return ""
