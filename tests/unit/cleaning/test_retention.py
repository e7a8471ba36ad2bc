"""Which batches stay although nothing of them does: the last of each producer."""

from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.core.cleaning.retention import LastOfProducer, Terms, _is_last_of_producer


@pytest.mark.parametrize(
    ("batch", "last", "stays"),
    [
        ({}, None, False),
        ({}, LastOfProducer(0, 2), True),
        ({"last_offset": 4}, LastOfProducer(5, 2), False),
        ({"has_producer_id": False}, LastOfProducer(0, 2), False),
        ({"is_control": True}, LastOfProducer(-1, 2), True),
        ({"is_control": True}, LastOfProducer(-1, 3), False),
        ({}, LastOfProducer(-1, 2), False),
    ],
)
def test_the_last_of_a_producer_is_known_by_its_offset_or_as_a_marker_by_its_epoch(
    batch: dict[str, Any], last: LastOfProducer | None, stays: bool
) -> None:
    usual = {"has_producer_id": True, "producer_id": 1, "producer_epoch": 2, "last_offset": 0, "is_control": False}
    header: Any = SimpleNamespace(**{**usual, **batch})
    assert _is_last_of_producer(header, Terms(lambda _: -1, 9, 0, 0, lambda _: last)) is stays
