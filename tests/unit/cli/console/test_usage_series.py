"""The use of limits over time: where it begins stays, and what it keeps is bounded."""

import math
import threading
from typing import Any

from kavka_operator.live_views.usage_series import HELD, LIMIT, LIMITS_MAX, POINTS_MAX, USED, Points, UsageSeries
from kavka_operator.web_page.sheet import UNTOLD, Cell, Row


def row(key: str, used: float | None, held: float | None = 0.0) -> Row:
    cells = [Cell("")] * 9
    cells[LIMIT] = Cell("1.0 MiB/s", 2.0**20)
    cells[USED] = UNTOLD if used is None else Cell("", used)
    cells[HELD] = UNTOLD if held is None else Cell("", held)
    return Row(key, tuple(cells))


def test_a_series_has_the_points_of_its_entity_in_order() -> None:
    series = UsageSeries()
    for number in range(3):
        rows = [row("client-id=a\0producer_byte_rate", number / 4), row("client-id=b\0producer_byte_rate", 1.0)]
        series.add(1000.0 * number, rows)
    (found,) = series.documents("client-id=a")
    assert (found["key"], found["limit"]) == ("producer_byte_rate", "1.0 MiB/s")
    assert found["points"] == [[0, 0.0, 0.0], [1000, 0.25, 0.0], [2000, 0.5, 0.0]]


def test_what_is_not_told_is_a_gap_and_not_zero() -> None:
    series = UsageSeries()
    series.add(0.0, [row("client-id=a\0k", None, None)])
    series.add(1000.0, [row("client-id=a\0k", math.inf)])
    assert series.documents("client-id=a")[0]["points"] == [[0, None, None], [1000, None, 0.0]]


def test_many_points_become_few_and_keep_the_beginning_and_the_highest() -> None:
    points = Points()
    for number in range(100 * POINTS_MAX):
        points.add(2000.0 * number, 0.9 if number == 777 else 0.1, 0.0)
        assert len(points.moments) == len(points.used) == len(points.held) <= POINTS_MAX
    assert points.moments[0] == 0.0
    assert points.moments[-1] > 0.95 * 2000.0 * 100 * POINTS_MAX
    assert max(points.used) == 0.9
    assert list(points.moments) == sorted(points.moments)
    assert len(points.moments) > POINTS_MAX / 4


def test_limits_are_bounded_and_those_that_are_gone_make_room() -> None:
    series = UsageSeries()
    series.add(0.0, [row(f"client-id={number}\0k", 0.5) for number in range(LIMITS_MAX + 1)])
    assert series.documents(f"client-id={LIMITS_MAX}") == []
    series.add(1.0, [row(f"client-id={LIMITS_MAX}\0k", 0.5)])
    assert len(series.documents(f"client-id={LIMITS_MAX}")) == 1
    assert series.documents("client-id=0") == []


def test_a_page_does_not_read_while_a_look_adds() -> None:
    readers = list[threading.Thread]()

    class Read(Points):
        """Points that a page reads as they are added to."""

        def add(self, *values: Any) -> None:
            readers.append(threading.Thread(target=series.documents, args=("client-id=a",)))
            readers[-1].start()
            readers[-1].join(0.05)
            assert readers[-1].is_alive(), "it waits for the look"
            super().add(*values)

    series = UsageSeries(Read)
    series.add(0.0, [row("client-id=a\0k", 0.5)])
    readers[0].join()
    assert len(series.documents("client-id=a")) == 1
