"""Keeps the use of each limit over time, from the first look to the last, in bounded memory. Pure.

When the points of a limit are as many as it may have, each two become one with the higher use: what a chart shows
begins where it began, with half of the detail.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from kavka_operator.web_page.sheet import Row

LIMITS_MAX: Final = 500
POINTS_MAX: Final = 240
LIMIT, USED, HELD = 3, 5, 6
"""The columns of the sheet of quotas that are kept."""


@dataclass(slots=True)
class Points:
    """The points of one limit, by moments in milliseconds; what was not told is NaN.

    `step_ms` is the least time between two points: those that come sooner raise the last one.
    """

    moments: "array[float]" = field(default_factory=lambda: array("d"))
    used: "array[float]" = field(default_factory=lambda: array("d"))
    held: "array[float]" = field(default_factory=lambda: array("d"))
    step_ms: float = 0.0
    limit: str = ""

    def add(self, at_ms: float, used: float, held: float) -> None:
        """Add a point, or raise the last one."""
        if self.moments and at_ms - self.moments[-1] < self.step_ms:
            self.used[-1], self.held[-1] = _higher(self.used[-1], used), _higher(self.held[-1], held)
            return
        self.moments.append(at_ms)
        self.used.append(used)
        self.held.append(held)
        if len(self.moments) > POINTS_MAX:
            self._halve()

    def _halve(self) -> None:
        self.step_ms = 2 * (self.moments[-1] - self.moments[0]) / len(self.moments)
        self.moments = self.moments[::2]
        self.used, self.held = _by_twos(self.used), _by_twos(self.held)


@dataclass(slots=True)
class UsageSeries:
    """The use of the limits of one cluster, by the keys of their rows."""

    make_points: Callable[[], Points] = Points
    _points: dict[str, Points] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    """Held by the thread of a look, which adds, and by those of pages, which read."""

    def add(self, at_ms: float, rows: Iterable[Row]) -> None:
        """Take the use of each limit from a sheet of quotas; it forgets limits that are deleted."""
        there = {row.key: row for row in rows}
        with self._lock:
            self._add(at_ms, there)

    def _add(self, at_ms: float, there: Mapping[str, Row]) -> None:
        for key in self._points.keys() - there.keys():
            del self._points[key]
        for key, row in there.items():
            if key not in self._points and len(self._points) >= LIMITS_MAX:
                continue
            points = self._points.setdefault(key, self.make_points())
            points.limit = row.cells[LIMIT].text
            points.add(at_ms, _number(row, USED), _number(row, HELD))

    def documents(self, entity: str) -> list[dict[str, Any]]:
        """Return the series of an entity's limits: moments, and shares of the limit and of the time held back."""
        with self._lock:
            names = sorted(key for key in self._points if key.partition("\0")[0] == entity)
            return [
                {
                    "key": name.partition("\0")[2],
                    "limit": (points := self._points[name]).limit,
                    "points": [
                        [round(at), _told(used), _told(held)]
                        for at, used, held in zip(points.moments, points.used, points.held, strict=True)
                    ],
                }
                for name in names
            ]


def _number(row: Row, column: int) -> float:
    order = row.cells[column].order
    return float(order) if isinstance(order, int | float) and math.isfinite(order) else math.nan


def _higher(first: float, second: float) -> float:
    """The higher number; NaN where neither is known."""
    return second if math.isnan(first) else first if math.isnan(second) else max(first, second)


def _by_twos(values: "array[float]") -> "array[float]":
    pairs = zip(values[::2], [*values[1::2], *[math.nan] * (len(values) % 2)], strict=True)
    return array("d", [_higher(*pair) for pair in pairs])


def _told(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)
