"""What a request moves of topics that have a limit, charged to them; its client waits where one is exceeded."""

from collections.abc import Iterable

from kavka_broker.api.broker import Broker, Client
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.protocol.messages.produce_request import TopicProduceData
from kavka_broker.quotas.topic_quota import LimitedTopic
from kavka_broker.replica.leading.session_partition import SessionPartition, TopicKey
from kavka_broker.replica.serving.partition_data import size_of


def charge_produced(topics: Iterable[TopicProduceData], broker: Broker, client: Client, now_ms: int) -> None:
    """Charge the batches for partitions that this broker leads, whatever becomes of them."""
    limited = broker.quotas.produced.limited
    for topic in topics:
        found = limited.get(topic.name or topic.topic_id)
        if found is not None:
            _charge(found, _sent(topic, found, broker), client, now_ms)


def charge_fetched(
    served: Iterable[tuple[SessionPartition, PartitionData]], broker: Broker, client: Client, now_ms: int
) -> None:
    """Charge the records of an answer to a consumer."""
    limited = broker.quotas.fetched.limited
    sizes: dict[TopicKey, dict[int, int]] = {}
    for asked, data in served:
        if asked.topic in limited and (size_bytes := size_of(data)):
            sizes.setdefault(asked.topic, {})[asked.index] = size_bytes
    for topic, of_partitions in sizes.items():
        _charge(limited[topic], of_partitions, client, now_ms)


def _sent(topic: TopicProduceData, found: LimitedTopic, broker: Broker) -> dict[int, int]:
    """The bytes for each partition that this broker leads."""
    sizes = {}
    for data in topic.partition_data:
        partition = broker.replicas.get(found.name, data.index)
        if data.records and partition is not None and partition.is_leader:
            sizes[data.index] = len(data.records)
    return sizes


def _charge(topic: LimitedTopic, sizes: dict[int, int], client: Client, now_ms: int) -> None:
    if sizes:
        for delay_ms, holding in topic.charge(sizes, now_ms):
            client.throttle(delay_ms, holding)
