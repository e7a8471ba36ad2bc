"""AssignReplicasToDirs (73): a broker says in which directories its replicas are (KIP-858).

- STALE_BROKER_EPOCH for an incarnation that was replaced; everything else is judged replica by replica.
- A replica in a directory that is not online leaves the in-sync set.
Versions: flexible throughout.
"""

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.directories import Assign, assign_directories
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from kavka_broker.protocol.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import CONTROLLER, api
from kavka_broker.request.split_requests import Each


@api(
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    versions=(0, 0),
    on=CONTROLLER,
    each=(Each("directories.topics.partitions", "directories.topics.partitions", per_turn=50, together=True),),
)
async def assign_replicas(
    request: AssignReplicasToDirsRequest, broker: Broker, client: Client
) -> AssignReplicasToDirsResponse:
    del client
    policy = policy_of(broker.config)
    commands = [
        Assign(topic.topic_id, partition.partition_index, directory.id)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]

    def decide(metadata: Metadata, _: int) -> Decision[list[ErrorCode]]:
        return assign_directories(metadata, request.broker_id, request.broker_epoch, commands, policy)

    codes = iter(await broker.active.submit(decide))
    return AssignReplicasToDirsResponse(
        directories=[
            DirectoryData(
                directory.id,
                [
                    TopicData(
                        topic.topic_id,
                        [PartitionData(partition.partition_index, next(codes)) for partition in topic.partitions],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
