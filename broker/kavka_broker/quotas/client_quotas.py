"""The quotas of clients, as handlers see them.

A handler records what a request has moved and gets the milliseconds that the client has to wait. The answer names them
in `throttle_time_ms`, and the connection is muted for as long from the moment of the charge (KIP-219), so that a client
which does not wait by itself waits all the same. The connection counts in `held` how long that really was.

- Produce counts the size of the request, whatever became of its records. They are in the log, nothing can be withheld.
- Fetch counts the size of the answer. When the client has to wait, the answer goes out empty and its bytes are taken
  back; so that this stays rare, `fetch_clamp` first limits what is read.

- Time on the loop counts for every request (`requests`), and its delay is at most one sample long.
- The active controller counts the partitions that are created and deleted (`request.mutation_quota`).
- Topics may limit the bytes of all of their clients together (`produced`, `fetched`).

`now_ms` should not follow the wall clock: use `Clock.monotonic_ms()`.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kavka_broker.core.quota.entity import Entity, IpEntity, QuotaKey, TopicEntity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.core.quota.topic_limits import TopicLimit
from kavka_broker.quotas.byte_quota import ByteQuota
from kavka_broker.quotas.callback import CONTROLLER_MUTATION, FETCH, PRODUCE, REQUEST
from kavka_broker.quotas.callback_runner import CalledRule, QuotaCalls
from kavka_broker.quotas.mutation_quota import MutationQuota
from kavka_broker.quotas.observe_mode import ObservedQuota
from kavka_broker.quotas.quota_shares import SENSORS_MAX, Shares
from kavka_broker.quotas.request_quota import RequestQuota
from kavka_broker.quotas.sensor import Holding
from kavka_broker.quotas.topic_quota import TopicQuota

__all__ = ["CONTROLLER_MUTATION", "FETCH", "PRODUCE", "REQUEST", "ClientQuotas", "Limits"]


OfEntities = Mapping[Entity | IpEntity, float]
Limits = Mapping[str, OfEntities]


class ClientQuotas:
    """The quotas of clients' requests. The metrics read `by_type`."""

    def __init__(
        self,
        window: SampleWindow | None = None,
        sensors_max: int = SENSORS_MAX,
        calls: QuotaCalls | None = None,
        controller_window: SampleWindow | None = None,
    ) -> None:
        window = window or SampleWindow()
        self.calls: Final = calls
        # Told of the limits of addresses, and of the observed ones: connections are counted where they are accepted.
        self.limit_addresses: Callable[[OfEntities, OfEntities], None] = lambda _, __: None
        rules: Mapping[str, CalledRule] = {} if calls is None else calls.rules
        of_controllers = controller_window or SampleWindow()
        self.requests: Final = RequestQuota(window, sensors_max, rule=rules.get(REQUEST))
        self.mutations: Final = MutationQuota(of_controllers, sensors_max, rule=rules.get(CONTROLLER_MUTATION))
        self._produce = ByteQuota(window, sensors_max, rule=rules.get(PRODUCE))
        self._fetch = ByteQuota(window, sensors_max, rule=rules.get(FETCH))
        self.by_type: Final[Mapping[str, Shares]] = {
            PRODUCE: self._produce,
            FETCH: self._fetch,
            REQUEST: self.requests,
            CONTROLLER_MUTATION: self.mutations,
        }
        for quota_type, rule in rules.items():
            rule.changed = self.by_type[quota_type].resolve_later
        self.by_key: Final[Mapping[QuotaKey, Shares]] = {
            QuotaKey.PRODUCER_BYTE_RATE: self._produce,
            QuotaKey.CONSUMER_BYTE_RATE: self._fetch,
            QuotaKey.REQUEST_PERCENTAGE: self.requests,
            QuotaKey.CONTROLLER_MUTATION_RATE: self.mutations,
        }
        self.produced: Final = TopicQuota(window)
        self.fetched: Final = TopicQuota(window)
        self.topics_by_key: Final[Mapping[QuotaKey, TopicQuota]] = {
            QuotaKey.PRODUCER_BYTE_RATE: self.produced,
            QuotaKey.CONSUMER_BYTE_RATE: self.fetched,
        }
        self.observed: Final[Mapping[str, ObservedQuota]] = {
            PRODUCE: ObservedQuota(window, sensors_max),
            FETCH: ObservedQuota(window, sensors_max),
            REQUEST: self.requests.observed,
            CONTROLLER_MUTATION: self.mutations.observed,
        }

    def produce(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> int:
        """Record a produce request; returns the `throttle_time_ms` of its answer."""
        if self.observed[PRODUCE].is_on:
            self.observed[PRODUCE].charge(user, client_id, size_bytes, now_ms)
        return self._produce.charge(user, client_id, size_bytes, now_ms)

    def held(self, quota_type: str, user: str, client_id: str, now_ms: int) -> Holding:
        """Return the counter of the time for which this client's connections are held back."""
        return self.by_type[quota_type].held(user, client_id, now_ms)

    def fetch(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> int:
        """Record a fetch answer; unless the result is 0, it must go out empty and counts for nothing."""
        delay_ms = self._fetch.admit(user, client_id, size_bytes, now_ms)
        if not delay_ms and self.observed[FETCH].is_on:
            self.observed[FETCH].charge(user, client_id, size_bytes, now_ms)
        return delay_ms

    def fetch_clamp(self, user: str, client_id: str, bytes_max: int, now_ms: int) -> int:
        """Return how much of `bytes_max` a fetch should read."""
        return self._fetch.clamp(user, client_id, bytes_max, now_ms)

    def update(
        self,
        limits: Limits,
        observed: Limits = MappingProxyType({}),
        budgets: Limits = MappingProxyType({}),
        now_ms: int = 0,
    ) -> None:
        """Take over the metadata's limits from the next request on, those that are only observed, and the budgets of
        the whole cluster, of which limits are parts.
        """
        for key, quota in self.by_key.items():
            quota.update(limits.get(key, {}), budgets.get(key, {}).keys(), now_ms)
        rates = QuotaKey.CONNECTION_CREATION_RATE
        self.limit_addresses(limits.get(rates, {}), observed.get(rates, {}))
        for key, quota_type in zip(self.by_key, self.by_type, strict=True):
            if key in observed or self.observed[quota_type].is_on:
                self.observed[quota_type].observe(limits.get(key, {}), observed.get(key, {}))

    def limit_topic(self, name: str, topic_id: bytes, limits: Iterable[TopicLimit], now_ms: int = 0) -> None:
        """Take over the limits that a topic has from the next request on."""
        by_key: dict[QuotaKey, dict[TopicEntity, int]] = {key: {} for key in self.topics_by_key}
        for key, entity, limit in limits:
            by_key[key][entity] = limit
        for key, quota in self.topics_by_key.items():
            quota.limit(name, topic_id, by_key[key], now_ms)

    def forget_topic(self, topic_id: bytes) -> None:
        """Forget the limits of a topic that was deleted."""
        for quota in self.topics_by_key.values():
            quota.forget(topic_id)

    def expire(self, now_ms: int) -> None:
        """Forget clients that have been idle for an hour; called every few minutes."""
        for quota in (*self.by_type.values(), *self.observed.values()):
            quota.expire(now_ms)
