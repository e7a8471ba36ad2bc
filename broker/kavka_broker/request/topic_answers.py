"""A topic's part of a Metadata answer, made once and kept until the topic or any broker changes.

Clients with a thousand topics ask again and again for what hardly ever changes.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState, Topic
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic

PARTITION_COST: Final = 3  # of a slice
#: Answers kept for each topic of the cluster: clients mostly use one listener, seldom more than two.
KEPT_PER_TOPIC_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class Remembered:
    """An answer, and the versions of its topic and brokers."""

    topic: Topic
    changes: int  # the topic's count of changes
    generation: int  # the generation of the brokers
    answer: MetadataResponseTopic


class TopicAnswers:
    """The topic answers of a node, by topic id and listener. The oldest answer is dropped first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, str], Remembered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def answer(self, metadata: Metadata, topic: Topic, listener: str, cost: Cost) -> Work[MetadataResponseTopic]:
        """A topic as Metadata shows it, shared between answers: it must not be changed."""
        if cost.add(1):
            yield
        changes, generation = topic.changes, metadata.brokers.generation
        kept = self._kept.get((topic.topic_id, listener))
        if kept is not None and kept.topic is topic and (kept.changes, kept.generation) == (changes, generation):
            return kept.answer
        answer = MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, is_internal=topic.name in INTERNAL)
        for index in sorted(topic.partitions):
            answer.partitions.append(_partition(metadata.brokers, index, topic.partitions[index], listener))
            if cost.add(PARTITION_COST):
                yield
        self._keep(Remembered(topic, changes, generation, answer), listener, KEPT_PER_TOPIC_MAX * len(metadata.topics))
        return answer

    def _keep(self, kept: Remembered, listener: str, kept_max: int) -> None:
        """Keep an answer, unless its topic has changed while it was made."""
        if kept.changes != kept.topic.changes:
            return
        self._kept[kept.topic.topic_id, listener] = kept
        while len(self._kept) > kept_max:
            self._kept.popitem(last=False)


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
        if (registered := brokers.get(broker_id)) is None or registered.fenced or listener not in registered.endpoints
    ]
