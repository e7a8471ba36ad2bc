"""The quota request_percentage: for how much of the time a client may keep the loop (KIP-124).

A percentage of what one loop can do: 100 is all of it, all of the time. A delay is at most one sample long, as in
Apache Kafka. What nodes ask of each other is counted apart and never throttled, and so is what has no answer to say it
with. What comes before a login is counted apart, too: a client may call itself what it likes then.
"""

from math import inf
from typing import Final

from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.quotas.observe_mode import ObservedRequests
from kavka_broker.quotas.quota_shares import SENSORS_MAX, Shares
from kavka_broker.quotas.resolver import Rule
from kavka_broker.quotas.sensor import Sensor

PERCENT_PER_NS: Final = 100 / 1e9


class RequestQuota(Shares):
    """The quota request_percentage. What is used is counted in nanoseconds, and the rate is a percentage.

    Every request is counted, so `sensor_of` does no more than find where; the rate waits until there is a limit.
    """

    def __init__(self, window: SampleWindow, sensors_max: int = SENSORS_MAX, *, rule: Rule | None = None) -> None:
        super().__init__(window, sensors_max, rule=rule)
        self.observed: Final = ObservedRequests(window, sensors_max)
        self.exempt: Final = Sensor(None, ("", ""))
        self.exempt.limit, self.exempt.rate = inf, SampledRate(window)
        self.before_login: Final = Sensor(None, ("", ""))
        """What all clients take together before their login. It has no limit: nothing before it counts for a name."""

    def sensor_of(self, user: str, client_id: str, now_ms: int) -> Sensor:
        """Return what counts the client's time."""
        return self._sensor(user, client_id, now_ms)

    def charge(self, sensor: Sensor, loop_ns: int, now_ms: int) -> int:
        """Record time on the loop under a limit; returns the milliseconds to wait."""
        assert sensor.rate is not None
        assert sensor.limit is not None
        delay_ms = min(sensor.rate.charge(loop_ns * PERCENT_PER_NS, now_ms, sensor.limit), self._window.size_ms)
        if delay_ms:
            self._throttled(sensor, delay_ms, now_ms)
        return delay_ms

    def add(self, sensor: Sensor, loop_ns: int, now_ms: int) -> None:
        """Record time for which nobody can be told to wait any more: the answer has left."""
        assert sensor.rate is not None
        sensor.rate.record(loop_ns * PERCENT_PER_NS, now_ms)

    def observe(self, user: str, client_id: str, loop_ns: int, now_ms: int) -> None:
        """Record time against the limits that are only observed."""
        self.observed.charge(user, client_id, loop_ns * PERCENT_PER_NS, now_ms)

    def exempt_percentage(self, now_ms: int) -> float:
        """Return for how much of the time exempt requests have the loop."""
        assert self.exempt.rate is not None
        return self.exempt.rate.measure(now_ms)
