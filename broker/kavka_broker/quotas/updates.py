"""The quotas follow the metadata, and the clock: overrides begin and end when their time has come."""

from collections.abc import Sequence
from typing import Final

from kavka_broker.core.config.topic import LogConfig, with_overrides
from kavka_broker.core.config.topic_table import RATE_KEYS
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.quota.entity_limits import budgets, in_force, next_change_ms, observed
from kavka_broker.core.quota.topic_limits import limits_of
from kavka_broker.interfaces import Clock
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.quotas.client_quotas import ClientQuotas

LOOKED_AGAIN_MS_MAX: Final = 60_000
"""The wall clock may be set: an override's end is looked at again after so long at the most."""


class QuotaTerms:
    """Keeps what is enforced at what the metadata says for now."""

    def __init__(self, quotas: ClientQuotas, metadata: Metadata, clock: Clock, timers: Timers, node_id: int) -> None:
        self._node_id = node_id
        self._quotas = quotas
        self._metadata = metadata
        self._clock = clock
        self._timers = timers
        self._timer: Timer | None = None

    def apply(self) -> None:
        """Take over the limits that hold now, and come back when an override begins or ends."""
        limits, now_ms = self._metadata.quotas.limits, self._clock.now_ms()
        held = in_force(limits, now_ms, self._node_id)
        self._quotas.update(held, observed(limits), budgets(limits), int(self._clock.monotonic_ms()))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (change_ms := next_change_ms(limits, now_ms)) is not None:
            self._timer = self._timers.after(min(change_ms - now_ms, LOOKED_AGAIN_MS_MAX), self.apply)


class TopicTerms:
    """Keeps the limits of topics at what their configs say."""

    def __init__(self, quotas: ClientQuotas, metadata: Metadata, clock: Clock) -> None:
        self._quotas = quotas
        self._metadata = metadata
        self._clock = clock

    def begin(self) -> None:
        """Take over the limits of all topics."""
        for name in self._metadata.configs.resources(ResourceType.TOPIC):
            self._limit(name)

    def apply(self, records: Sequence[Message]) -> None:
        """Follow committed records; the image has replayed them already."""
        altered: dict[str, None] = {}
        for record in records:
            if type(record) is RemoveTopicRecord:
                self._quotas.forget_topic(record.topic_id)
            elif type(record) is ConfigRecord and record.name in RATE_KEYS:
                altered[record.resource_name] = None
        for name in altered:
            self._limit(name)

    def _limit(self, name: str) -> None:
        topic = self._metadata.topics.get(name)
        if topic is not None:  # otherwise it was deleted by the same records
            config = with_overrides(LogConfig(), self._metadata.configs.topic(name))
            limits, now_ms = limits_of(name, config), int(self._clock.monotonic_ms())
            self._quotas.limit_topic(name, topic.topic_id, limits, now_ms)
