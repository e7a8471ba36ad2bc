"""What instances and series assert of themselves: a defect of ours is found where it is made."""

from collections.abc import Callable

import pytest

from kavka_broker.core.telemetry.instances import Instances
from kavka_broker.core.telemetry.otlp import Kind, Point, Pushed
from kavka_broker.core.telemetry.series import AllSeries, gathered
from kavka_broker.loop.slices import at_once

NOW_MS = 1_000_000


DEFECTS: dict[str, Callable[[], object]] = {
    "room for no series": lambda: AllSeries(0),
    "room for no series of a client": lambda: AllSeries(1, 0),
    "fewer than no points": lambda: gathered(Pushed([Point("m", Kind.LEVEL, 1.0, b"")], 0), lambda _: True, -1),
    "room for no instance": lambda: Instances(0),
    "an id that is no uuid": lambda: at_once(Instances().asked(b"short", {}, lambda: NOW_MS)),
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_found_where_it_is_made(what: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[what]()
