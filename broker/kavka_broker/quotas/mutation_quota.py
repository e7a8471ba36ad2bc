"""The quota controller_mutation_rate: how many partitions a client may have created and deleted (KIP-599).

The active controller counts, in a token bucket for each share. A request takes its permits topic by topic, and the
topic that takes the bucket below zero is still allowed. What comes while it is below is refused, or, for a client of a
version that does not know the error, allowed and made to wait.
"""

from typing import Final

from kavka_broker.core.quota.bucket import TokenBucket
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.interfaces import Clock
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.quotas.observe_mode import ObservedMutations
from kavka_broker.quotas.quota_shares import SENSORS_MAX, Shares
from kavka_broker.quotas.resolver import Rule
from kavka_broker.quotas.sensor import Sensor


class MutationQuota(Shares):
    """The quota controller_mutation_rate."""

    def __init__(self, window: SampleWindow, sensors_max: int = SENSORS_MAX, *, rule: Rule | None = None) -> None:
        super().__init__(window, sensors_max, rule=rule)
        self.observed: Final = ObservedMutations(window, sensors_max)

    def begin(self, user: str, client_id: str, clock: Clock, *, strict: bool) -> "Mutations":
        """Return the permits of one request."""
        sensor = self._sensor(user, client_id, int(clock.monotonic_ms()))
        if sensor.bucket is None:
            sensor.bucket = TokenBucket(self._window)
        return Mutations((user, client_id), sensor, sensor.bucket, clock, strict=strict)

    def finish(self, mutations: "Mutations", now_ms: int) -> int:
        """Count what the request has taken; returns the milliseconds that its client has to wait."""
        sensor = mutations.sensor
        sensor.used_total += mutations.taken
        if sensor.rate is not None and mutations.taken:
            sensor.rate.record(mutations.taken, now_ms)
        if self.observed.is_on and mutations.taken:
            self.observed.charge(*mutations.client, mutations.taken, now_ms)
        delay_ms = mutations.delay_ms(now_ms)
        if delay_ms:
            self._throttled(sensor, delay_ms, now_ms)
        return delay_ms


class Mutations:
    """What one request creates and deletes; a `strict` one is refused where the quota is used up.

    `record` may be called in a thread, while a long decision is made: nothing else is decided then, and nothing but the
    bucket is changed.
    """

    def __init__(
        self, client: tuple[str, str], sensor: Sensor, bucket: TokenBucket, clock: Clock, *, strict: bool
    ) -> None:
        self.client = client
        self.sensor = sensor
        self.taken = 0
        self._bucket = bucket
        self._clock = clock
        self._is_strict = strict
        self._until_ms = 0

    def record(self, partitions: int) -> None:
        """Count partitions ahead of their records. Raises THROTTLING_QUOTA_EXCEEDED."""
        limit, now_ms = self.sensor.limit, int(self._clock.monotonic_ms())
        if limit is not None and self._is_strict and (delay_ms := self._bucket.exhausted_ms(now_ms, limit)):
            self._until_ms = now_ms + delay_ms
            raise BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the quota controller_mutation_rate is used up")
        self.taken += partitions
        if limit is not None:
            self._bucket.spend(partitions, now_ms, limit)
            if not self._is_strict:
                self._until_ms = now_ms + self._bucket.throttle_ms(limit)

    def delay_ms(self, now_ms: int) -> int:
        """Return what is left of the delay, which runs while the records are being committed."""
        return max(0, self._until_ms - now_ms)
