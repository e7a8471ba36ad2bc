"""What a request moves of topics that have a limit, charged to them; its client waits where one is exceeded.

A request may name very many partitions, so it is charged in slices; `at_once` is for a request that is served at once.
"""

from collections.abc import Iterable
from typing import Protocol

from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.protocol.messages.produce_request import TopicProduceData
from kavka_broker.quotas.client_quotas import FETCH, PRODUCE
from kavka_broker.quotas.topic_quota import LimitedTopic
from kavka_broker.replica.serving.partition_data import size_of
from kavka_broker.request.broker import Broker, Client


def charge_produced(topics: Iterable[TopicProduceData], broker: Broker, client: Client) -> Work[None]:
    """Charge the batches for partitions that this broker leads, whatever becomes of them; each is named once."""
    limited, cost = broker.quotas.produced.limited, Cost()
    for topic in topics if limited else ():
        found = limited.get(topic.name or topic.topic_id)
        if found is not None:
            sizes = yield from _sent(topic, found, broker, cost)
            yield from _charge(found, sizes, broker, client, cost, PRODUCE)
        if cost.add(1):
            yield


class FetchedPartition(Protocol):
    """A partition of a fetch, or of a share fetch."""

    @property
    def topic(self) -> bytes | str: ...
    @property
    def index(self) -> int: ...


def charge_fetched(
    served: Iterable[tuple[FetchedPartition, PartitionData]], broker: Broker, client: Client
) -> Work[None]:
    """Charge the records of an answer to a consumer."""
    limited, cost = broker.quotas.fetched.limited, Cost()
    sizes: dict[LimitedTopic, dict[int, int]] = {}
    for asked, data in served if limited else ():
        found = limited.get(asked.topic)
        if found is not None and (size_bytes := size_of(data)):
            sizes.setdefault(found, {})[asked.index] = size_bytes
        if cost.add(1):
            yield
    for topic, of_partitions in sizes.items():
        yield from _charge(topic, of_partitions, broker, client, cost, FETCH)


def _sent(topic: TopicProduceData, found: LimitedTopic, broker: Broker, cost: Cost) -> Work[dict[int, int]]:
    """The bytes for each partition that this broker leads."""
    sizes = {}
    for data in topic.partition_data:
        partition = broker.partitions.get(found.name, data.index)
        if data.records and partition is not None and partition.is_leader:
            sizes[data.index] = len(data.records)
        if cost.add(1):
            yield
    return sizes


def _charge(
    topic: LimitedTopic, sizes: dict[int, int], broker: Broker, client: Client, cost: Cost, quota_type: str
) -> Work[None]:
    if not sizes:
        return
    now_ms = int(broker.clock.monotonic_ms())
    for delay_ms, limit in (yield from topic.charge(sizes, now_ms, cost)):
        client.throttle(delay_ms, limit.holding())
        if broker.use is not None:
            quota = f"topic_{quota_type}", entity_key(limit.entity), float(limit.limit)
            broker.use.throttled(client.user, client.address, client.client_id, quota, delay_ms)
