"""Ranges of offsets, of which one with more deliveries and a later state holds."""

import pytest

from kavka_broker.core.share.state_batches import BATCHES_MAX, StateBatch, check_batches, combine
from kavka_broker.protocol.errors import BrokerError, ErrorCode


@pytest.mark.parametrize(
    ("batches", "start_offset", "combined"),
    [
        ([], 0, []),
        ([(5, 9, 0, 1), (0, 4, 0, 1)], 0, [(0, 9, 0, 1)]),
        ([(0, 4, 0, 1), (6, 9, 0, 1)], 0, [(0, 4, 0, 1), (6, 9, 0, 1)]),
        ([(0, 9, 0, 1), (3, 4, 2, 2)], 0, [(0, 2, 0, 1), (3, 4, 2, 2), (5, 9, 0, 1)]),
        ([(3, 4, 2, 2), (0, 9, 0, 1)], 0, [(0, 2, 0, 1), (3, 4, 2, 2), (5, 9, 0, 1)]),  # a late write
        ([(0, 9, 0, 1), (0, 9, 2, 1)], 0, [(0, 9, 2, 1)]),
        ([(0, 9, 2, 1), (0, 9, 4, 1)], 0, [(0, 9, 4, 1)]),
        ([(0, 9, 2, 1), (20, 29, 0, 3)], 5, [(5, 9, 2, 1), (20, 29, 0, 3)]),
        ([(0, 9, 2, 1)], 10, []),
        ([(0, 9, 0, 1), (5, 14, 0, 2), (10, 19, 0, 3)], 0, [(0, 4, 0, 1), (5, 9, 0, 2), (10, 19, 0, 3)]),
    ],
)
def test_combined(batches: list[tuple[int, ...]], start_offset: int, combined: list[tuple[int, ...]]) -> None:
    found = combine([StateBatch(*batch) for batch in batches], start_offset)
    assert found == [StateBatch(*batch) for batch in combined]


@pytest.mark.parametrize("batch", [(3, 2, 0, 1), (-1, 2, 0, 1), (0, 2, -1, 1), (0, 2, 0, -1)])
def test_what_is_no_state_is_refused(batch: tuple[int, ...]) -> None:
    with pytest.raises(BrokerError) as refused:
        check_batches([StateBatch(*batch)])
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_a_write_has_a_bound() -> None:
    check_batches([StateBatch(0, 0, 0, 1)] * BATCHES_MAX)
    with pytest.raises(BrokerError):
        check_batches([StateBatch(0, 0, 0, 1)] * (BATCHES_MAX + 1))
