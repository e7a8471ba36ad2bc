"""The byte rates that a topic's config allows its clients (after KIP-1010)."""

from collections.abc import Iterator

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.config.topic_table import LONG_MAX
from kavka_broker.core.quota.entity import QuotaKey, TopicEntity

TopicLimit = tuple[QuotaKey, TopicEntity, int]


def limits_of(topic: str, config: LogConfig) -> list[TopicLimit]:
    """The limits that the topic has; the default of each is none."""
    return [limit for limit in _all(topic, config) if limit[2] < LONG_MAX]


def _all(topic: str, config: LogConfig) -> Iterator[TopicLimit]:
    together, apart = TopicEntity(topic), TopicEntity(topic, each_partition=True)
    yield QuotaKey.PRODUCER_BYTE_RATE, together, config.kavka_topic_producer_byte_rate
    yield QuotaKey.PRODUCER_BYTE_RATE, apart, config.kavka_partition_producer_byte_rate
    yield QuotaKey.CONSUMER_BYTE_RATE, together, config.kavka_topic_consumer_byte_rate
    yield QuotaKey.CONSUMER_BYTE_RATE, apart, config.kavka_partition_consumer_byte_rate
