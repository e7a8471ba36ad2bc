"""DescribeQuorum (55): who leads the controllers, who votes, who observes, and how far each has come.

- The leader answers, for all: how far a replica is, when it last fetched, and when it last had all that there was.
- Its own times are the present, since it is never behind itself. One that never fetched has -1 everywhere.
- The high watermark of a new leader is -1 until it has committed something itself.
- Only partition 0 of `__cluster_metadata` has a quorum; another topic is UNKNOWN_TOPIC_OR_PARTITION.
- A controller that does not lead says NOT_LEADER_OR_FOLLOWER.
Versions: flexible from 0; times from 1; directories and addresses from 2.
"""

from kavka_broker.core.metadata.image.topic_names import METADATA_TOPIC
from kavka_broker.core.raft.replicas import Replica
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kavka_broker.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each

NODES_FROM_VERSION = 2


@api(
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    versions=(0, 2),
    on=BOTH,
    forwarded=True,
    each=(Each("topics.partitions", "topics.partitions", per_turn=100, once=True),),
)
def describe_quorum(request: DescribeQuorumRequest, broker: Broker, client: Client) -> DescribeQuorumResponse:
    answer = DescribeQuorumResponse(
        topics=[
            TopicData(
                topic.topic_name,
                [partition(topic.topic_name, asked.partition_index, broker) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )
    if client.version < NODES_FROM_VERSION:
        forget_directories(answer)
        return answer
    answer.nodes = [
        Node(voter.node_id, [Listener(*endpoint) for endpoint in voter.endpoints]) for voter in broker.quorum.voters
    ]
    return answer


def forget_directories(answer: DescribeQuorumResponse) -> None:
    """Remove directory ids, for which older versions have no field."""
    for topic in answer.topics:
        for partition in topic.partitions:
            for replica in (*partition.current_voters, *partition.observers):
                replica.replica_directory_id = ZERO


def partition(topic: str, index: int, broker: Broker) -> PartitionData:
    if (topic, index) != (METADATA_TOPIC, 0):
        return PartitionData(
            index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{METADATA_TOPIC}-0 is the one log of controllers"
        )
    quorum = broker.quorum
    if not quorum.is_leader:
        return PartitionData(
            index,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"node {quorum.node_id} does not lead the controllers",
            leader_id=quorum.leader_id,
            leader_epoch=quorum.epoch,
        )
    voters, observers = quorum.node.replicas(quorum.now_ms)
    return PartitionData(
        partition_index=index,
        leader_id=quorum.node_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.node.told_high_watermark,
        current_voters=[state(voter, broker) for voter in voters],
        observers=[state(observer, broker) for observer in observers],
    )


def state(replica: Replica, broker: Broker) -> ReplicaState:
    """The state of a replica, with times of the wall clock."""
    ahead_ms = broker.clock.now_ms() - broker.quorum.now_ms

    def wall(monotonic_ms: int) -> int:
        return -1 if monotonic_ms < 0 else monotonic_ms + ahead_ms

    return ReplicaState(
        replica.node_id,
        replica.directory_id,
        replica.end_offset,
        wall(replica.fetched_ms),
        wall(replica.caught_up_ms),
    )
