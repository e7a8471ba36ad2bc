"""Ranges of offsets, of which one with more deliveries and a later state holds."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.share.packed_batches import PackedBatches, overlay
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


batches = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 6),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=8,
)


@given(batches, batches, st.integers(0, 35), st.integers(0, 35))
def test_an_overlay_is_what_both_are_combined_to(
    before: list[StateBatch], written: list[StateBatch], known_from: int, start_offset: int
) -> None:
    known = combine(before, known_from)
    found = overlay(PackedBatches.of(known), written, start_offset)
    assert list(found) == combine([*known, *written], start_offset)
    assert found.is_combined(start_offset)


@given(batches, st.integers(0, 35))
def test_each_offset_has_the_state_with_most_deliveries(before: list[StateBatch], start_offset: int) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for first, last, state, count in before:
        for offset in range(max(first, start_offset), last + 1):
            expected[offset] = max(expected.get(offset, (0, 0)), (count, state))
    combined = combine(before, start_offset)
    found = {
        offset: (one.delivery_count, one.delivery_state) for one in combined for offset in range(one[0], one[1] + 1)
    }
    assert found == expected
    assert sum(last - first + 1 for first, last, _, _ in combined) == len(found), "no offset twice"
    assert all(a.last_offset < b.first_offset for a, b in pairwise(combined))


def test_a_part_of_packed_batches_is_looked_at() -> None:
    """By its numbers, as those before it are known to be in order."""
    ordered = PackedBatches.of([StateBatch(0, 4, 0, 1), StateBatch(5, 9, 2, 1), StateBatch(12, 19, 0, 1)])
    assert ordered.is_combined(0)
    assert all(ordered.is_combined(0, low, high) for low in range(1, 4) for high in (low, 3, None))
    torn = PackedBatches.of([StateBatch(0, 4, 0, 1), StateBatch(5, 9, 0, 1), StateBatch(8, 19, 2, 1)])
    assert not torn.is_combined(0, 1, 2), "like the one that it touches"
    assert not torn.is_combined(0, 2), "beginning within the one before"


def test_what_is_left_from_an_offset_on() -> None:
    known = PackedBatches.of([StateBatch(0, 4, 0, 1), StateBatch(5, 9, 2, 1), StateBatch(12, 19, 0, 1)])
    assert list(known.since(5)) == [StateBatch(5, 9, 2, 1), StateBatch(12, 19, 0, 1)]
    assert list(known.since(7)) == [StateBatch(7, 9, 2, 1), StateBatch(12, 19, 0, 1)]
    assert list(known.since(10)) == [StateBatch(12, 19, 0, 1)]
    assert list(known.since(20)) == []
