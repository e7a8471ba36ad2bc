"""What clients have pushed, as series that a scrape can read: bounded, whatever clients push.

A series is a metric of a client id and its software. Several instances with one client id share it, as the nodes and
partitions of one instance do: of levels the largest of the last intervals counts, flows are added up. Clients choose
their names and the names of metrics, so everything is bounded:

- a client has `METRICS_PER_CLIENT_MAX` series, all together have `SERIES_MAX`; what comes later is counted under the
  client `__other__`, which is bounded as a client is; what has no room there is omitted, and counted;
- `TOTALS_MAX` last values of cumulative totals; the one not heard of for longest makes room. An increase is counted
  from the second value on, so a total that was forgotten loses an increase, and none is counted twice;
- a series that is not pushed for long ends.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from crc32c import crc32c

from kavka_broker.core.client_names import label_of
from kavka_broker.core.telemetry.instances import EXPIRY_INTERVALS, EXPIRY_MS_MIN
from kavka_broker.core.telemetry.otlp import Kind, Point, Pushed

SERIES_MAX: Final = 5_000
METRICS_PER_CLIENT_MAX: Final = 250
POINTS_MAX: Final = 2_000
"""Of one push."""
TOTALS_MAX: Final = 10_000
LEVEL_INTERVALS: Final = 2
EXPIRE_MS_MIN: Final = 1_000
"""Between two searches for room: a search looks at every series."""
OTHER: Final = "__other__"


class Source(NamedTuple):
    """The labels of a client."""

    client_id: str
    software: str


OTHERS: Final = Source(OTHER, OTHER)


def source(client_id: str, name: str, version: str) -> Source:
    """Return the labels of a client: of names that are too long the beginning and a hash, so that two stay apart."""
    software = f"{name}/{version}" if name else ""
    return Source(label_of(client_id), label_of(software))


class Key(NamedTuple):
    """What a series is known by."""

    client: Source
    metric: str
    is_level: bool


@dataclass(slots=True)
class Series:
    """A level, with the instance that said it and until when it counts, or the sum of a flow."""

    value: float = 0.0
    said_by: bytes = b""
    counts_until_ms: float = 0.0
    expires_ms: float = 0.0


class AllSeries:
    """The series of this broker."""

    def __init__(
        self,
        series_max: int = SERIES_MAX,
        per_client_max: int = METRICS_PER_CLIENT_MAX,
        totals_max: int = TOTALS_MAX,
    ) -> None:
        assert series_max >= 1, series_max
        assert per_client_max >= 1, per_client_max
        self._series_max = series_max
        self._per_client_max = per_client_max
        self._totals_max = totals_max
        self.series: dict[Key, Series] = {}
        self._per_client: Counter[Source] = Counter()
        self._totals: OrderedDict[tuple[bytes, str, int], float] = OrderedDict()
        self._expired_ms = float("-inf")
        self.omitted_total = 0

    def __len__(self) -> int:
        return len(self.series)

    def __iter__(self) -> Iterator[tuple[Key, float]]:
        for key, series in self.series.items():
            yield key, series.value

    def take(self, client: Source, instance_id: bytes, points: Iterable[Point], interval_ms: int, now_ms: int) -> None:
        """Take what an instance has pushed, as `gathered` gives it."""
        for point in points:
            is_level = point.kind is Kind.LEVEL
            increase = 0.0 if is_level else self._increase(instance_id, point)
            series = self._at(Key(client, point.metric, is_level), interval_ms, now_ms)
            if series is not None and is_level:
                _raise(series, instance_id, point.value, now_ms, interval_ms)
            elif series is not None:
                series.value += increase

    def expire(self, now_ms: int) -> None:
        """End the series that were not pushed for long."""
        self._expired_ms = now_ms
        for key in [key for key, series in self.series.items() if series.expires_ms <= now_ms]:
            del self.series[key]
            self._per_client[key.client] -= 1
            assert self._per_client[key.client] >= 0, f"{key.client} has fewer series than have ended"
            if not self._per_client[key.client]:
                del self._per_client[key.client]
        assert len(self._per_client) <= len(self.series), "a client without series is remembered"

    def _at(self, key: Key, interval_ms: int, now_ms: int) -> Series | None:
        series = self.series.get(key) or self._add(key, now_ms)
        if series is None and key.client != OTHERS:
            return self._at(key._replace(client=OTHERS), interval_ms, now_ms)
        if series is None:
            self.omitted_total += 1
            return None
        series.expires_ms = max(series.expires_ms, now_ms + max(EXPIRY_MS_MIN, EXPIRY_INTERVALS * interval_ms))
        return series

    def _add(self, key: Key, now_ms: int) -> Series | None:
        if self._per_client[key.client] >= self._per_client_max:
            return None
        if key.client != OTHERS and not self._has_room(now_ms):
            return None
        assert key not in self.series, f"{key} is there already"
        self._per_client[key.client] += 1
        self.series[key] = Series()
        return self.series[key]

    def _has_room(self, now_ms: int) -> bool:
        if self._of_clients >= self._series_max and now_ms - self._expired_ms >= EXPIRE_MS_MIN:
            self.expire(now_ms)
        return self._of_clients < self._series_max

    @property
    def _of_clients(self) -> int:
        count = len(self.series) - self._per_client[OTHERS]
        assert 0 <= count <= self._series_max, f"{count} series of {self._series_max}"
        return count

    def _increase(self, instance_id: bytes, point: Point) -> float:
        """Return by how much a flow has grown. A total below the last one has begun again at 0."""
        if point.kind is Kind.DELTA:
            return point.value
        key = (instance_id, point.metric, crc32c(point.identity))
        last = self._totals.pop(key, None)
        self._totals[key] = point.value
        if len(self._totals) > self._totals_max:
            self._totals.popitem(last=False)
        assert len(self._totals) <= self._totals_max, len(self._totals)
        if last is None:
            return 0.0
        return point.value - last if point.value >= last else point.value


def gathered(pushed: Pushed, wants: Callable[[str], bool], points_max: int = POINTS_MAX) -> Pushed:
    """Return one point a metric of what was asked for, and each cumulative total; at most `points_max` of all.

    It is made in a thread, so that the loop has little to do for a push with very many points.
    """
    found: dict[tuple[str, Kind, bytes], Point] = {}
    omitted = pushed.omitted
    for point in pushed.points:
        if not wants(point.metric):
            continue
        key = (point.metric, point.kind, point.identity if point.kind is Kind.TOTAL else b"")
        before = found.get(key)
        if before is None and len(found) == points_max:
            omitted += 1
        elif before is None or point.kind is Kind.TOTAL:
            found[key] = point
        elif point.kind is Kind.LEVEL:
            found[key] = max(before, point, key=value_of)
        else:
            found[key] = point._replace(value=before.value + point.value)
    assert len(found) <= points_max, f"{len(found)} points of {points_max}"
    assert omitted >= pushed.omitted, f"{omitted} are omitted, {pushed.omitted} were before"
    return Pushed(list(found.values()), omitted)


def value_of(point: Point) -> float:
    return point.value


def _raise(series: Series, instance_id: bytes, value: float, now_ms: int, interval_ms: int) -> None:
    """Let the level be this value, unless another instance has said a larger one lately."""
    if value >= series.value or series.said_by == instance_id or series.counts_until_ms <= now_ms:
        series.value, series.said_by = value, instance_id
        series.counts_until_ms = now_ms + LEVEL_INTERVALS * interval_ms
