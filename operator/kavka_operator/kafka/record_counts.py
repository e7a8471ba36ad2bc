"""How many records a topic holds, by the first and the last offset of each partition."""

from collections.abc import Mapping
from typing import Final

from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kavka_operator.kafka.errors import raise_for
from kavka_operator.kafka.mutations import SendTo

EARLIEST: Final = -2
LATEST: Final = -1


def records(send: SendTo, topic: str) -> int:
    """The number of records of all partitions, with those that compaction has removed. Raises KafkaError."""
    topics = [MetadataRequest.MetadataRequestTopic(name=topic)]
    metadata = send(MetadataRequest(topics=topics, allow_auto_topic_creation=False), None)
    (found,) = metadata.topics
    raise_for(found.error_code, None)
    by_leader: dict[int, list[int]] = {}
    for partition in found.partitions:
        by_leader.setdefault(partition.leader_id, []).append(partition.partition_index)
    latest = _offsets(send, topic, by_leader, LATEST)
    return latest - _offsets(send, topic, by_leader, EARLIEST)


def _offsets(send: SendTo, topic: str, by_leader: Mapping[int, list[int]], moment: int) -> int:
    total = 0
    for leader, indexes in by_leader.items():
        wanted = ListOffsetsRequest.ListOffsetsTopic
        partitions = [
            wanted.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=moment)
            for index in indexes
        ]
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=0, topics=[wanted(name=topic, partitions=partitions)]
        )
        for partition in send(request, leader).topics[0].partitions:
            raise_for(partition.error_code, None)
            total += partition.offset
    return total
