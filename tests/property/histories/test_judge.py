"""The judge objects to no legal history, and to each mistake that is planted in one."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.histories.judge import anomalies, fatal
from tests.property.histories.executions import legal
from tests.property.histories.mutations import MUTATIONS

SEEDS = st.integers(0, 2**32 - 1)


@given(seed=SEEDS, turns=st.integers(1, 120))
def test_a_legal_history_has_no_fatal_anomaly(seed: int, turns: int) -> None:
    assert not fatal(legal(seed, turns))


@pytest.mark.parametrize("name", MUTATIONS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.filter_too_much])
@given(seed=SEEDS)
def test_a_mistake_in_a_legal_history_is_found(name: str, seed: int) -> None:
    mutate, wanted = MUTATIONS[name]
    history = legal(seed)
    changed = mutate(history, Random(seed))
    if changed is not None:
        assert wanted & {one.name for one in fatal(changed)}


@pytest.mark.parametrize("name", MUTATIONS)
def test_most_histories_have_a_place_for_a_mistake(name: str) -> None:
    mutate, _ = MUTATIONS[name]
    assert sum(mutate(legal(seed), Random(seed)) is not None for seed in range(40)) > 20


def test_legal_histories_have_what_is_allowed() -> None:
    """Otherwise they would show nothing of the difference."""
    found = {one.name for seed in range(40) for one in anomalies(legal(seed, 120))}
    assert {"G0", "G1c-ww", "int-send-skip"} <= found
