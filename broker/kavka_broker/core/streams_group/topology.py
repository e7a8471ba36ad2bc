"""The topology of a streams application, as its members send it and as the log keeps it.

A subtopology reads source topics, the user's own or repartition topics that another subtopology writes, and keeps its
state in changelog topics. Both of the latter kinds are internal: the broker creates them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from kavka_broker.core.consumer_group.state import TEXT_BYTES
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent
from kavka_broker.protocol.messages.group import streams_group_topology_value as kept

__all__ = ["CopartitionGroup", "InternalTopic", "Subtopology", "Topology", "topology_from", "topology_value"]


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that belongs to the application. Without a number of partitions (0) the topology decides it; without a
    replication factor (0) the cluster does.
    """

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Source topics that need equal numbers of partitions: their places in the lists of the subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a topology that is run as tasks, one for each partition of its source topics."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def internal_topics(self) -> Iterator[InternalTopic]:
        return chain(self.repartition_source_topics, self.state_changelog_topics)

    @property
    def texts(self) -> Iterator[str]:
        """All names and configs."""
        yield self.subtopology_id
        yield from chain(self.source_topics, self.source_topic_regex, self.repartition_sink_topics)
        for topic in self.internal_topics:
            yield topic.name
            yield from chain.from_iterable(topic.configs)


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology of an application; a later one has a larger epoch.

    Invariants: `required_topics` are the topics that have to exist before a task can run. `subtopology_of` maps each
    source topic, also of the internal ones, to the subtopology that reads it. `texts` counts names and configs, and
    `size_bytes` is about what they take.
    """

    epoch: int
    subtopologies: tuple[Subtopology, ...]
    required_topics: frozenset[str] = field(init=False, compare=False, repr=False)
    subtopology_of: dict[str, str] = field(init=False, compare=False, repr=False)
    texts: int = field(init=False, compare=False, repr=False)
    size_bytes: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.subtopologies, key=lambda part: part.subtopology_id))
        reads = {
            name: part.subtopology_id
            for part in ordered
            for name in chain(part.source_topics, (topic.name for topic in part.repartition_source_topics))
        }
        logs = (topic.name for part in ordered for topic in part.state_changelog_topics)
        lengths = [len(text) for part in ordered for text in part.texts]
        places = sum(
            len(group.source_topics) + len(group.source_topic_regex) + len(group.repartition_source_topics)
            for part in ordered
            for group in part.copartition_groups
        )
        object.__setattr__(self, "subtopologies", ordered)
        object.__setattr__(self, "required_topics", frozenset(chain(reads, logs)))
        object.__setattr__(self, "subtopology_of", reads)
        object.__setattr__(self, "texts", len(lengths) + places)
        object.__setattr__(self, "size_bytes", TEXT_BYTES * (len(lengths) + places) + sum(lengths))


# --- as it is sent and kept, in messages of equal fields ------------------------------------------------------------


def topology_from(message: sent.Topology | kept.StreamsGroupTopologyValue) -> Topology:
    return Topology(
        message.epoch,
        tuple(
            Subtopology(
                part.subtopology_id,
                tuple(part.source_topics),
                tuple(part.source_topic_regex),
                _internal_topics(part.state_changelog_topics),
                tuple(part.repartition_sink_topics),
                _internal_topics(part.repartition_source_topics),
                tuple(
                    CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ),
            )
            for part in message.subtopologies
        ),
    )


def _internal_topics(topics: list[sent.TopicInfo] | list[kept.TopicInfo]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in topics
    )


def topology_value(topology: Topology) -> kept.StreamsGroupTopologyValue:
    return kept.StreamsGroupTopologyValue(
        topology.epoch,
        [
            kept.Subtopology(
                part.subtopology_id,
                list(part.source_topics),
                list(part.source_topic_regex),
                _infos(part.state_changelog_topics),
                list(part.repartition_sink_topics),
                _infos(part.repartition_source_topics),
                [
                    kept.CopartitionGroup(
                        list(group.source_topics),
                        list(group.source_topic_regex),
                        list(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ],
            )
            for part in topology.subtopologies
        ],
    )


def _infos(topics: tuple[InternalTopic, ...]) -> list[kept.TopicInfo]:
    return [
        kept.TopicInfo(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            [kept.TopicConfig(key, value) for key, value in topic.configs],
        )
        for topic in topics
    ]
