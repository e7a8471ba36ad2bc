"""DescribeQuorum (55): who leads the controllers, who votes, and how far the metadata log is.

- Only partition 0 of `__cluster_metadata` has a quorum; another topic is UNKNOWN_TOPIC_OR_PARTITION.
- The leader's own times are the present, since it is never behind itself.
Versions: flexible from 0; times from 1; directories and addresses from 2.
"""

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import BOTH, api
from kavka_broker.core.metadata.topic_names import METADATA_TOPIC
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

NODES_FROM_VERSION = 2


@api(DescribeQuorumRequest, DescribeQuorumResponse, versions=(0, 2), on=BOTH, forwarded=True)
def describe_quorum(request: DescribeQuorumRequest, broker: Broker, client: Client) -> DescribeQuorumResponse:
    answer = DescribeQuorumResponse(
        error_message=None,
        topics=[
            TopicData(
                topic.topic_name, [partition(topic.topic_name, one.partition_index, broker) for one in topic.partitions]
            )
            for topic in request.topics
        ],
    )
    if client.version >= NODES_FROM_VERSION:
        answer.nodes = [
            Node(voter.node_id, [Listener(*endpoint) for endpoint in voter.endpoints]) for voter in broker.active.voters
        ]
    return answer


def partition(topic: str, index: int, broker: Broker) -> PartitionData:
    if (topic, index) != (METADATA_TOPIC, 0):
        return PartitionData(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    controller, now_ms = broker.active, broker.clock.now_ms()
    return PartitionData(
        partition_index=index,
        error_message=None,
        leader_id=controller.node_id,
        leader_epoch=controller.epoch,
        high_watermark=controller.high_watermark,
        current_voters=[
            ReplicaState(voter.node_id, voter.directory_id, controller.high_watermark, now_ms, now_ms)
            for voter in controller.voters
        ],
    )
