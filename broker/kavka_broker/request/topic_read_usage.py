"""What consumers read of topics, counted for the audit trail, in slices."""

from collections.abc import Iterable

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition, TopicKey
from kavka_broker.replica.serving.partition_data import size_of
from kavka_broker.request.broker import Broker, Client


def count_read(served: Iterable[tuple[SessionPartition, PartitionData]], broker: Broker, client: Client) -> Work[None]:
    """Count the records of an answer to a consumer, by their bytes."""
    use, cost = broker.use, Cost()
    if use is None:
        return
    for asked, data in served:
        if size_bytes := size_of(data):
            use.read(client.user, client.address, client.client_id, _name(asked.topic, broker), size_bytes)
        if cost.add(1):
            yield


def _name(topic: TopicKey, broker: Broker) -> str:
    if isinstance(topic, str):
        return topic
    known = broker.metadata.topics.by_id(topic)
    return topic.hex() if known is None else known.name  # deleted while its records were read
