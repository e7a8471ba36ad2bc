"""What several answers say about brokers and topics, from the committed image.

A topic's part of a Metadata answer is made once and kept on the topic until the topic or any broker changes: clients
with a thousand topics ask again and again for what hardly ever changes.
"""

from typing import Final

from kavka_broker.api.broker import Broker
from kavka_broker.core.config.describe import Layers
from kavka_broker.core.metadata.image.brokers import Brokers, Endpoint, Registration
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState, Topic
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kavka_broker.slices import Pace, Work

#: Bits of the operations that exist on a resource. Without an authorizer everybody may do all of them.
TOPIC_OPERATIONS: Final = 0b1101_1111_1000
CLUSTER_OPERATIONS: Final = 0b1_1111_1010_0000
NOT_ASKED: Final = -(2**31)
UNITS_PER_PARTITION: Final = 3  # of a slice
BEING_MADE: Final = "(being made)"  # no listener's name


def layers(broker: Broker) -> Layers:
    """The configuration of this broker, place by place."""
    configs = broker.metadata.configs
    return Layers(broker.config, configs.broker(broker.node_id), configs.all_brokers())


def endpoints(broker: Broker, listener: str) -> list[tuple[int, Endpoint, str | None]]:
    """The brokers that can be reached by a listener, or could a moment ago: id, address, rack."""
    brokers, lingering = broker.metadata.brokers, broker.lingering.ids
    shown = brokers.alive()
    if lingering:
        shown = sorted((one for one in brokers if not one.fenced or one.broker_id in lingering), key=by_id)
    return [(one.broker_id, one.endpoints[listener], one.rack) for one in shown if listener in one.endpoints]


def by_id(broker: Registration) -> int:
    return broker.broker_id


def some_broker(metadata: Metadata, preferred: int) -> int:
    """Who is named as controller: controllers have no client listener, and any broker passes requests on (KIP-590)."""
    alive = [one.broker_id for one in metadata.brokers.alive()]
    return preferred if preferred in alive else min(alive, default=-1)


def topic_answer(metadata: Metadata, topic: Topic, listener: str, pace: Pace) -> Work[MetadataResponseTopic]:
    """A topic as Metadata shows it. Shared between answers: not to be changed."""
    if pace.spent(1):
        yield
    generation = metadata.brokers.generation
    kept: tuple[int, MetadataResponseTopic] | None = topic.answers.get(listener)
    if kept is not None and kept[0] == generation:
        return kept[1]
    mark = topic.answers.setdefault(BEING_MADE, object())  # gone once the topic has changed
    answer = MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, is_internal=topic.name in INTERNAL)
    for index in sorted(topic.partitions):
        answer.partitions.append(_partition(metadata.brokers, index, topic.partitions[index], listener))
        if pace.spent(UNITS_PER_PARTITION):
            yield
    if topic.answers.get(BEING_MADE) is mark:
        topic.answers[listener] = (generation, answer)
    return answer


def _partition(brokers: Brokers, index: int, state: PartitionState, listener: str) -> MetadataResponsePartition:
    leader = brokers.get(state.leader)
    error = ErrorCode.NONE
    if leader is None or leader.fenced:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif listener not in leader.endpoints:
        error = ErrorCode.LISTENER_NOT_FOUND
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=state.leader if error is ErrorCode.NONE else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=offline(brokers, state, listener),
    )


def offline(brokers: Brokers, state: PartitionState, listener: str) -> list[int]:
    """The replicas on brokers that are fenced, gone, or not reachable by this listener."""
    return [
        broker_id
        for broker_id in state.replicas
        if (one := brokers.get(broker_id)) is None or one.fenced or listener not in one.endpoints
    ]
