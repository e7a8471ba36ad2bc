"""The partitions that a member serves at its endpoint, which interactive queries go by."""

from collections.abc import Iterator

from kavka_broker.core.consumer_group.subscribed_topics import Topics
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.tasks import SinceEpochs, Tasks

__all__ = ["endpoint_partitions"]


def endpoint_partitions(
    tasks: Tasks | SinceEpochs, topology: ConfiguredTopology, topics: Topics
) -> Iterator[tuple[str, list[int]]]:
    """Yield the partitions of source topics that the tasks read, a topic a step: both may be many.

    A source topic with fewer partitions than its subtopology has tasks is read by the first tasks alone. Apache Kafka
    4.3 names partitions here that do not exist, unless the member has more tasks than the topic has partitions.
    """
    for subtopology_id in sorted(tasks):
        subtopology = topology.subtopologies.get(subtopology_id)
        if subtopology is None:
            continue
        indexes = sorted(tasks[subtopology_id])
        for name in sorted(subtopology.source_topics.union(subtopology.repartition_source_topics)):
            topic = topics.get(name)
            if topic is not None:
                count = len(topic.partitions)
                yield name, [index for index in indexes if index < count]
