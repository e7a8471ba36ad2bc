"""AlterReplicaLogDirs (34): move replicas between the log directories of this broker (KIP-113).

- Answered when the moves have begun; DescribeLogDirs shows how far they are.
- A path that is none of this broker's: LOG_DIR_NOT_FOUND; one that is offline: KAFKA_STORAGE_ERROR.
- A path that is cordoned (KIP-1066): INVALID_REPLICA_ASSIGNMENT.
- A partition without a replica here: REPLICA_NOT_AVAILABLE.
- The directory in which the replica is already: a move elsewhere ends.
Versions: flexible from 2.
"""

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each


@api(
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    versions=(1, 2),
    each=(Each("dirs.topics.partitions", "results.partitions", per_turn=100),),
)
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, broker: Broker, client: Client
) -> AlterReplicaLogDirsResponse:
    del client
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(index, move(topic.name, index, directory.path, broker))
                for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(name, results) for name, results in topics.items()]
    )


def move(topic: str, index: int, path: str, broker: Broker) -> ErrorCode:
    try:
        begin(topic, index, path, broker.replicas)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


def begin(topic: str, index: int, path: str, replicas: ReplicaManager) -> None:
    """Begin a move. Raises BrokerError."""
    directory = next((log_directory for log_directory in replicas.log_directories if log_directory.path == path), None)
    if directory is None:
        raise BrokerError(ErrorCode.LOG_DIR_NOT_FOUND)
    if not directory.is_online:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)
    if directory.is_cordoned:
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    partition = replicas.partitions.get(topic, index)
    if partition is None:
        raise BrokerError(ErrorCode.REPLICA_NOT_AVAILABLE)
    replicas.moves.begin(partition, directory)
