"""The quotas producer_byte_rate and consumer_byte_rate: records bytes, and says how long the client has to wait."""

from kavka_broker.core.quota.rate import THROTTLE_MS_MAX
from kavka_broker.quotas.quota_shares import Shares
from kavka_broker.quotas.sensor import PART_DELAY_MS_MAX, Sensor


class ByteQuota(Shares):
    """The quota producer_byte_rate or consumer_byte_rate."""

    def charge(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> int:
        """Record bytes that cannot be taken back; returns the milliseconds to wait."""
        sensor = self.resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        sensor.used_total += size_bytes
        if sensor.limit is None:
            return 0
        assert sensor.rate is not None
        if sensor.allowance is None:
            delay_ms = sensor.rate.charge(size_bytes, now_ms, sensor.limit)
        else:
            sensor.rate.record(size_bytes, now_ms)
            delay_ms = min(sensor.allowance.spend(size_bytes, now_ms, sensor.limit), PART_DELAY_MS_MAX)
        if delay_ms:
            self._throttled(sensor, delay_ms, now_ms)
        return delay_ms

    def admit(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> int:
        """Record bytes that may still be withheld: where the client has to wait, nothing has been recorded.

        An answer that is larger than the whole window allows could never pass. It goes through when nothing else
        was sent lately, and the client then waits for as long as its bytes take at the limit.
        """
        sensor = self.resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        if sensor.limit is None:
            sensor.used_total += size_bytes
            return 0
        of = _delay_of if sensor.allowance is None else _delay_of_part
        delay_ms = of(sensor, size_bytes, now_ms)
        if delay_ms:
            self._throttled(sensor, delay_ms, now_ms)
        else:
            sensor.used_total += size_bytes
        return delay_ms

    def clamp(self, user: str, client_id: str, bytes_max: int, now_ms: int) -> int:
        """Return at most the room of an empty window; an answer beyond that would surely be withheld."""
        sensor = self.resolved.get((user, client_id)) or self._resolve(user, client_id, now_ms)
        sensor.last_used_ms = now_ms
        if sensor.limit is None or sensor.rate is None:
            return bytes_max
        return min(bytes_max, int(sensor.rate.window.value_max(sensor.limit)))


def _delay_of(sensor: Sensor, size_bytes: int, now_ms: int) -> int:
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


def _delay_of_part(sensor: Sensor, size_bytes: int, now_ms: int) -> int:
    """An answer passes when what was sent before is paid for, and is owed then."""
    rate, limit, allowance = sensor.rate, sensor.limit, sensor.allowance
    assert rate is not None
    assert limit is not None
    assert allowance is not None
    if delay_ms := allowance.rest_ms(allowance.due, now_ms, limit):
        return min(delay_ms, PART_DELAY_MS_MAX)
    rate.record(size_bytes, now_ms)
    allowance.spend(size_bytes, now_ms, limit)
    return 0
