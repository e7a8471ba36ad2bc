"""AlterPartition (56): a leader proposes another in-sync set, and learns the state that holds.

- A stale broker epoch is STALE_BROKER_EPOCH for the whole request; the rest is judged partition by partition
  (`core.metadata.decide.alter_partition`).
- From version 3 each member comes with its broker epoch (KIP-903).
- Answered when the change is committed.
Versions: flexible throughout; by topic ids throughout.
"""

from itertools import chain

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.alter_partition import Outcome, alter_partitions
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.partition.isr_proposal import InSyncMember, IsrChange
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.alter_partition_request import AlterPartitionRequest, PartitionData
from kavka_broker.protocol.messages.alter_partition_response import AlterPartitionResponse, TopicData
from kavka_broker.protocol.messages.alter_partition_response import PartitionData as PartitionAnswer
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import CONTROLLER, api
from kavka_broker.request.split_requests import Each


@api(
    AlterPartitionRequest,
    AlterPartitionResponse,
    versions=(2, 3),
    on=CONTROLLER,
    each=(Each("topics.partitions", "topics.partitions", per_turn=50, together=True),),
)
async def alter_partition(request: AlterPartitionRequest, broker: Broker, client: Client) -> AlterPartitionResponse:
    del client
    changes = [isr_change(topic.topic_id, partition) for topic in request.topics for partition in topic.partitions]

    def decide(metadata: Metadata, _: int) -> Decision[list[Outcome]]:
        return alter_partitions(metadata, request.broker_id, request.broker_epoch, changes, policy_of(broker.config))

    outcomes = iter(await broker.active.submit(decide))
    return AlterPartitionResponse(
        topics=[
            TopicData(
                topic.topic_id, [answer(partition.partition_index, next(outcomes)) for partition in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def isr_change(topic_id: bytes, asked: PartitionData) -> IsrChange:
    members = chain(
        map(InSyncMember, asked.new_isr),
        (InSyncMember(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs),
    )
    return IsrChange(
        topic_id,
        asked.partition_index,
        asked.leader_epoch,
        asked.partition_epoch,
        tuple(members),
        asked.leader_recovery_state,
    )


def answer(partition: int, outcome: Outcome) -> PartitionAnswer:
    if isinstance(outcome, ErrorCode):
        return PartitionAnswer(partition, outcome)
    return PartitionAnswer(
        partition,
        ErrorCode.NONE,
        outcome.leader,
        outcome.leader_epoch,
        list(outcome.isr),
        outcome.recovery_state,
        outcome.partition_epoch,
    )
