"""Brokers that were fenced a moment ago are still shown to clients, although they lead nothing any more.

The answer to Metadata that first names a new leader would also be the first without the old one. librdkafka then gives
up the broker that is missing while it moves its partitions to the new leader, and now and then takes them back to no
leader at all, which it only mends a second later. Shown for `LINGER_MS` longer, the dead broker costs a client a
refused connection at most; Apache Kafka shows it for the nine seconds that it takes to notice.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.membership.metadata_feed import MetadataFeed
from kavka_broker.protocol.message import Message

LINGER_MS: Final = 3_000


class Lingering:
    """Brokers that were alive a moment ago and are still registered. Bounded by the number of brokers."""

    def __init__(self, image: MetadataFeed, timers: Timers) -> None:
        self._brokers = image.metadata.brokers
        self._timers = timers
        self._generation = -1
        self._alive: set[int] = set()
        self._lingering: dict[int, Timer] = {}
        image.subscribers.append(self._replayed)

    @property
    def ids(self) -> Collection[int]:
        return self._lingering.keys()

    def _replayed(self, _: Sequence[Message]) -> None:
        if self._brokers.generation == self._generation:
            return
        self._generation = self._brokers.generation
        before, self._alive = self._alive, {broker.broker_id for broker in self._brokers.alive()}
        for broker_id in sorted(before - self._alive):
            self._lingering[broker_id] = self._timers.after(LINGER_MS, self._forget, broker_id)
        for broker_id in list(self._lingering):
            if broker_id in self._alive or self._brokers.get(broker_id) is None:
                self._forget(broker_id)

    def _forget(self, broker_id: int) -> None:
        timer = self._lingering.pop(broker_id, None)
        if timer is not None:
            timer.cancel()
