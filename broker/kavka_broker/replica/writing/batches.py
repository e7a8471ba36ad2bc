"""Checks of a Produce before the log looks at its batches: no partition twice, and each batch as its version allows."""

from typing import Final

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.records.batch import CODEC_MASK, TRANSACTIONAL_BIT
from kavka_broker.protocol.records.compression import Compression

ZSTD_VERSION: Final = 7  # KIP-110
ACKS: Final = (-1, 0, 1)
ATTRIBUTES_POSITION: Final = 22  # the position of the lower attributes byte in a batch of magic 2


def has_repeats(topics: list[TopicProduceData]) -> bool:
    """Whether a topic or a partition is named more than once."""
    if len(topics) > 1 and len({(topic.name, topic.topic_id) for topic in topics}) < len(topics):
        return True
    for topic in topics:
        partitions = topic.partition_data
        if len(partitions) > 1 and len({data.index for data in partitions}) < len(partitions):
            return True
    return False


def without_repeats(request: ProduceRequest) -> Work[None]:
    """Keep each topic and partition once, in the order of their first naming, with the batch named last."""
    wanted: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    cost = Cost()
    for topic in request.topic_data:
        partitions = wanted.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            partitions[data.index] = data
            if cost.add(1):
                yield
    topics = []
    for named, partitions in wanted.items():
        topics.append(TopicProduceData(*named, list(partitions.values())))
        if cost.add(1):
            yield
    request.topic_data = topics


def check(records: memoryview | None, acks: int, version: int, *, is_transactional: bool) -> None:
    """Check a partition's batch. Raises BrokerError."""
    if acks not in ACKS:
        raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}; use -1 (all), 0 or 1")
    if not records:
        raise BrokerError(ErrorCode.INVALID_RECORD, "a partition without a record batch")
    attributes = records[ATTRIBUTES_POSITION] if len(records) > ATTRIBUTES_POSITION else 0
    if version < ZSTD_VERSION and attributes & CODEC_MASK == Compression.ZSTD:
        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {ZSTD_VERSION} or later")
    if attributes & TRANSACTIONAL_BIT and not is_transactional:
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch without an id")
