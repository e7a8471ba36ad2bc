"""The quotas producer_byte_rate and consumer_byte_rate: records bytes, and says how long the client has to wait."""

from kavka_broker.core.quota.rate import THROTTLE_MS_MAX
from kavka_broker.quotas.sensor import Sensor
from kavka_broker.quotas.shares import Shares


class ByteQuota(Shares):
    """The quota producer_byte_rate or consumer_byte_rate."""

    def charge(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> int:
        """Record bytes that cannot be taken back; returns the milliseconds to wait."""
        sensor = self._resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        sensor.used_total += size_bytes
        if sensor.limit is None:
            return 0
        assert sensor.rate is not None
        delay_ms = self._told(sensor, sensor.rate.charge(size_bytes, now_ms, sensor.limit), now_ms)
        if delay_ms:
            self._throttled(sensor, delay_ms, now_ms)
        return delay_ms

    def admit(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> int:
        """Record bytes that may still be withheld: where the client has to wait, nothing has been recorded.

        An answer that is larger than the whole window allows could never pass. It goes through when nothing else
        was sent lately, and the client then waits for as long as its bytes take at the limit.
        """
        sensor = self._resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        if sensor.limit is None:
            sensor.used_total += size_bytes
            return 0
        delay_ms = self._told(sensor, self._delay_of(sensor, size_bytes, now_ms), now_ms)
        if delay_ms:
            self._throttled(sensor, delay_ms, now_ms)
        else:
            sensor.used_total += size_bytes
        return delay_ms

    def _told(self, sensor: Sensor, delay_ms: int, now_ms: int) -> int:
        """Return the delay to tell the client; one under a part of a budget is looked at again when it is over."""
        return sensor.owes(delay_ms, now_ms) if delay_ms and self._is_part(sensor) else delay_ms

    def clamp(self, user: str, client_id: str, bytes_max: int, now_ms: int) -> int:
        """Return at most the room of an empty window; an answer beyond that would surely be withheld."""
        sensor = self._resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        if sensor.limit is None or sensor.rate is None:
            return bytes_max
        return min(bytes_max, int(sensor.rate.window.value_max(sensor.limit)))

    def _delay_of(self, sensor: Sensor, size_bytes: int, now_ms: int) -> int:
        rate, limit = sensor.rate, sensor.limit
        assert rate is not None
        assert limit is not None
        if sensor.held_until_ms > now_ms:
            return sensor.held_until_ms - now_ms
        if limit > 0 and size_bytes > rate.window.value_max(limit) and not rate.measure(now_ms):
            sensor.held_until_ms = now_ms + int(min(size_bytes / limit * 1000, THROTTLE_MS_MAX))
            return 0
        delay_ms = rate.charge(size_bytes, now_ms, limit)
        if delay_ms:
            rate.record(-size_bytes, now_ms)
        return delay_ms
