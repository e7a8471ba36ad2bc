"""Forgetting the producers of all logs that have been silent for `producer.id.expiration.ms`."""

from collections.abc import Iterable

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.storage.log import Log


def expire_producers(logs: Iterable[Log], now_ms: int, expiration_ms: int) -> Work[int]:
    """Forget producers that were silent for so long; returns how many."""
    count, cost = 0, Cost()
    for partition_log in logs:
        if partition_log.is_failed or partition_log.is_closed:
            continue
        looked_at = len(partition_log.producers)
        count += partition_log.producers.expire(now_ms, expiration_ms)
        if cost.add(1 + looked_at):
            yield
    return count
