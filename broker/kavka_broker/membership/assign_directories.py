"""Takes to the controller in which directories the replicas of this broker are (AssignReplicasToDirs, KIP-858)."""

from collections.abc import Callable, Mapping
from typing import Final

from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kavka_broker.protocol.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse

ASSIGN_MS_MAX: Final = 30_000
Place = tuple[bytes, int]  # topic id, index


class DirectoryAssigner:
    """`AssignDirectories` of broker `node_id`."""

    def __init__(self, channel: ControllerChannel, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch

    async def __call__(self, directories: Mapping[Place, bytes]) -> None:
        """Send the reports; a replica that the controller no longer knows is ignored. Raises BrokerError."""
        request = AssignReplicasToDirsRequest(self._node_id, self._broker_epoch(), by_directory(directories))
        try:
            answer = await self._channel.ask(request, AssignReplicasToDirsResponse, timeout_ms=ASSIGN_MS_MAX)
        except Unreachable as problem:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, str(problem)) from problem
        if answer.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode(answer.error_code))


def by_directory(directories: Mapping[Place, bytes]) -> list[DirectoryData]:
    found: dict[bytes, dict[bytes, list[PartitionData]]] = {}
    for (topic_id, index), directory_id in directories.items():
        found.setdefault(directory_id, {}).setdefault(topic_id, []).append(PartitionData(index))
    return [
        DirectoryData(directory_id, [TopicData(topic_id, indexes) for topic_id, indexes in topics.items()])
        for directory_id, topics in found.items()
    ]
