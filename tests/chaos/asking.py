"""What a node says of a topic, asked over a plain socket: the leaders and in-sync replicas of its partitions."""

from dataclasses import dataclass
from typing import Final

from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.support.asking import ask

SECONDS_MAX: Final = 2.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A partition, as one node knows it."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return self.leader >= 0 and sorted(self.isr) == sorted(self.replicas)


def partitions_of(address: tuple[str, int], topic: str) -> list[Seen]:
    """The partitions that the node knows, by index; none where it does not know the topic. Raises OSError."""
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    decoded = ask(address, request, MetadataResponse, 8, SECONDS_MAX)
    return sorted(
        (
            Seen(found.partition_index, found.leader_id, found.leader_epoch,
                 tuple(found.replica_nodes), tuple(found.isr_nodes))
            for topic_found in decoded.topics
            for found in topic_found.partitions
        ),
        key=lambda seen: seen.index,
    )  # fmt: skip
