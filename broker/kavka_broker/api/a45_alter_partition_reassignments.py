"""AlterPartitionReassignments (45): move partitions to other brokers, or stop moving them.

- Brokers that are null cancel; NO_REASSIGNMENT_IN_PROGRESS where there is nothing to cancel.
- INVALID_REPLICA_ASSIGNMENT for brokers that are not registered or named twice, and for none.
- From version 1 the replication factor can be held to: INVALID_REPLICATION_FACTOR where it would change.
- Answered when the reassignments have begun, not when they are complete (ListPartitionReassignments shows that).
Versions: flexible throughout.
"""

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.reassignments import Reassign, reassign
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kavka_broker.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each


@api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    versions=(0, 1),
    on=BOTH,
    forwarded=True,
    each=(Each("topics.partitions", "responses.partitions", per_turn=50),),
)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, broker: Broker, client: Client
) -> AlterPartitionReassignmentsResponse:
    del client
    commands = [command(topic.name, partition) for topic in request.topics for partition in topic.partitions]
    change, policy = request.allow_replication_factor_change, policy_of(broker.config)

    def decide(metadata: Metadata, _: int) -> Decision[list[BrokerError | None]]:
        return reassign(metadata, commands, policy, allow_replication_factor_change=change)

    results = iter(await broker.active.submit(decide))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                topic.name, [outcome(partition.partition_index, next(results)) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def command(topic: str, asked: ReassignablePartition) -> Reassign:
    return Reassign(topic, asked.partition_index, None if asked.replicas is None else tuple(asked.replicas))


def outcome(partition: int, refusal: BrokerError | None) -> ReassignablePartitionResponse:
    if refusal is None:
        return ReassignablePartitionResponse(partition, ErrorCode.NONE, None)
    return ReassignablePartitionResponse(partition, refusal.code, refusal.message)
