"""What instances and series assert of themselves: a defect of ours is found where it is made."""

from collections.abc import Callable

import pytest

from kavka_broker.core.telemetry import series
from kavka_broker.core.telemetry.instances import Instances
from kavka_broker.core.telemetry.otlp import Kind, Point, Pushed
from kavka_broker.core.telemetry.series import AllSeries, Key, Source, gathered
from kavka_broker.loop.slices import at_once

NOW_MS, INTERVAL_MS = 1_000_000, 1_000
CLIENT = Source("c", "s/1")
KEY = Key(CLIENT, "m", is_level=True)


def taken() -> AllSeries:
    held = AllSeries()
    held.take(CLIENT, b"i" * 16, [Point("m", Kind.LEVEL, 1.0, b"")], INTERVAL_MS, NOW_MS)
    return held


def counted_once_too_few() -> None:
    held = taken()
    held._per_client[CLIENT] = 0
    held.expire(10**9)


def counted_without_series() -> None:
    held = taken()
    held._per_client[Source("d", "s/1")] = 1
    held._per_client[Source("e", "s/1")] = 1
    held.expire(NOW_MS)


def others_counted_too_often() -> None:
    held = taken()
    held._per_client[series.OTHERS] = 2
    held._has_room(NOW_MS)


DEFECTS: dict[str, Callable[[], object]] = {
    "room for no series": lambda: AllSeries(0),
    "room for no series of a client": lambda: AllSeries(1, 0),
    "a client with fewer series than end": counted_once_too_few,
    "a client without series": counted_without_series,
    "more series of others than there are": others_counted_too_often,
    "a series that is there already": lambda: taken()._add(KEY, NOW_MS),
    "fewer than no points": lambda: gathered(Pushed([Point("m", Kind.LEVEL, 1.0, b"")], 0), lambda _: True, -1),
    "room for no instance": lambda: Instances(0),
    "an id that is no uuid": lambda: at_once(Instances().asked(b"short", {}, lambda: NOW_MS)),
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_found_where_it_is_made(what: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[what]()
