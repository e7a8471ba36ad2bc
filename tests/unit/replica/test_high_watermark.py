"""How many replicas must be in sync before a partition commits."""

import pytest

from kavka_broker.core.partition.min_insync_replicas import effective_min_isr


@pytest.mark.parametrize(("configured", "replicas", "effective"), [(1, 3, 1), (2, 3, 2), (2, 1, 1), (3, 2, 2)])
def test_min_isr_is_at_most_the_number_of_replicas(configured: int, replicas: int, effective: int) -> None:
    assert effective_min_isr(configured, replicas) == effective
