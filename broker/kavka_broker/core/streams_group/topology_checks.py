"""What the topology in a heartbeat may say: the checks that need neither the group nor the topics that exist.

The words are Apache Kafka's where it checks the same. It answers UNKNOWN_SERVER_ERROR to the rest.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kavka_broker.core.metadata.image.topic_names import INTERNAL, problem_with
from kavka_broker.core.streams_group.topology import InternalTopic, Subtopology, Topology
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["check_topic_names", "check_topology", "named_topics"]

SUBTOPOLOGIES_MAX: Final = 10_000
TOPICS_MAX: Final = 10_000
"""That a topology names, as a consumer may. Each heartbeat that finds topics changed looks at all of them."""


def named_topics(topology: Topology) -> list[str]:
    """Return every topic that a topology names, once, in its order. Its member needs the right to describe them."""
    names = dict[str, None]()
    for part in topology.subtopologies:
        names.update(dict.fromkeys(part.source_topics))
        names.update(dict.fromkeys(part.repartition_sink_topics))
        names.update(dict.fromkeys(topic.name for topic in part.repartition_source_topics))
        names.update(dict.fromkeys(topic.name for topic in part.state_changelog_topics))
    return list(names)


def check_topic_names(names: Sequence[str]) -> None:
    """Check the topics that a topology names. Raises STREAMS_INVALID_TOPOLOGY."""
    if len(names) > TOPICS_MAX:
        raise _invalid(f"The topology names {len(names)} topics; at most {TOPICS_MAX} are allowed.")
    prohibited = [name for name in names if name in INTERNAL]
    if prohibited:
        listed = ",".join(prohibited)
        raise _invalid(f"Use of Kafka internal topics {listed} in a Kafka Streams topology is prohibited.")
    unnamable = [name for name in names if problem_with(name) is not None]
    if unnamable:
        raise _invalid(f"Topic names {','.join(unnamable)} are not valid topic names.")


def check_topology(topology: Topology) -> None:
    """Check what a member says of its topology when it joins. Raises BrokerError."""
    if topology.epoch < 0:
        raise _invalid(f"The topology epoch is {topology.epoch}, but must be at least 0.")
    if len(topology.subtopologies) > SUBTOPOLOGIES_MAX:
        problem = (
            f"The topology has {len(topology.subtopologies)} subtopologies; at most {SUBTOPOLOGIES_MAX} are allowed."
        )
        raise _invalid(problem)
    _require_distinct((part.subtopology_id for part in topology.subtopologies), "subtopology")
    _require_distinct(_sources_of(topology), "source topic")
    for part in topology.subtopologies:
        _check_subtopology(part)


def _sources_of(topology: Topology) -> Iterator[str]:
    """Yield the topics that are read. Kafka Streams reads each in one subtopology, which bounds tasks by partitions."""
    for part in topology.subtopologies:
        yield from part.source_topics
        yield from (topic.name for topic in part.repartition_source_topics)


def _check_subtopology(subtopology: Subtopology) -> None:
    """Raises BrokerError."""
    if subtopology.source_topic_regex:
        problem = "Regular expressions for source topics are not supported yet."
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
    for topic in subtopology.state_changelog_topics:
        if topic.partitions:
            problem = (
                f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                f"{topic.partitions}."
            )
            raise _invalid(problem)
    _check_internal(subtopology.state_changelog_topics)
    _check_internal(subtopology.repartition_source_topics)
    for group in subtopology.copartition_groups:
        _check_indexes(group.source_topics, len(subtopology.source_topics))
        _check_indexes(group.repartition_source_topics, len(subtopology.repartition_source_topics))
        _check_indexes(group.source_topic_regex, len(subtopology.source_topic_regex))


def _check_internal(topics: Sequence[InternalTopic]) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY."""
    _require_distinct((topic.name for topic in topics), "internal topic")
    for topic in topics:
        if topic.partitions < 0:
            raise _invalid(f"Internal topic {topic.name} has {topic.partitions} partitions.")
        _require_distinct((key for key, _ in topic.configs), "config")


def _check_indexes(indexes: Iterable[int], count: int) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY."""
    for index in indexes:
        if not 0 <= index < count:
            raise _invalid(f"A copartition group has topic {index} of {count}.")


def _require_distinct(names: Iterable[str], kind: str) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise _invalid(f"The topology names the {kind} {name} twice.")
        seen.add(name)


def _invalid(problem: str) -> BrokerError:
    return BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, problem)
