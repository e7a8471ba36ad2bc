"""Replicas that move to other brokers (KIP-455)."""

from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest

from kavka_operator.domain.plan import MoveReplicas
from kavka_operator.kafka.connection import REQUEST_TIMEOUT_MS
from kavka_operator.kafka.errors import raise_for
from kavka_operator.kafka.mutations import Send

Coming = tuple[tuple[int, ...], frozenset[int]]
"""The replicas that a partition will have, and those of them that are new."""


def move(send: Send, action: MoveReplicas) -> None:
    """Begin to move replicas, or change where they go. Raises KafkaError."""
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    wanted = [
        kind.ReassignablePartition(partition_index=index, replicas=list(replicas))
        for index, replicas in action.replicas.items()
    ]
    topics = [kind(name=action.name, partitions=wanted)]
    response = send(AlterPartitionReassignmentsRequest(timeout_ms=REQUEST_TIMEOUT_MS, topics=topics))
    raise_for(response.error_code, response.error_message)
    for topic in response.responses:
        for result in topic.partitions:
            raise_for(result.error_code, result.error_message)


def under_way(send: Send) -> dict[str, dict[int, Coming]]:
    """The partitions under reassignment, with the replicas that they will have and those that come."""
    response = send(ListPartitionReassignmentsRequest(timeout_ms=REQUEST_TIMEOUT_MS, topics=None))
    raise_for(response.error_code, response.error_message)
    return {
        topic.name: {
            partition.partition_index: (
                tuple(n for n in partition.replicas if n not in partition.removing_replicas),
                frozenset(partition.adding_replicas),
            )
            for partition in topic.partitions
        }
        for topic in response.topics
    }
