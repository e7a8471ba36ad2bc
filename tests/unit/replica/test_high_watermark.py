"""The high watermark: what counts as committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.partition.high_watermark import advance, effective_min_isr


@pytest.mark.parametrize(
    ("before", "ends", "min_isr", "after"),
    [
        (0, [10], 1, 10),
        (5, [10, 7, 8], 2, 7),
        (5, [10, 3], 2, 5),  # a follower that joined behind never moves it back
        (5, [10], 2, 5),  # strict min ISR: one of two in sync commits nothing
    ],
)
def test_advance(before: int, ends: list[int], min_isr: int, after: int) -> None:
    assert advance(before, ends, min_isr) == after


@given(st.integers(0, 100), st.lists(st.integers(0, 100), min_size=1, max_size=5), st.integers(1, 5))
def test_it_never_moves_back_nor_past_an_in_sync_replica(before: int, ends: list[int], min_isr: int) -> None:
    after = advance(before, ends, min_isr)
    assert after >= before
    assert after == before or after <= min(ends)


@pytest.mark.parametrize(("configured", "replicas", "effective"), [(1, 3, 1), (2, 3, 2), (2, 1, 1), (3, 2, 2)])
def test_effective_min_isr(configured: int, replicas: int, effective: int) -> None:
    assert effective_min_isr(configured, replicas) == effective
