"""Whatever happens to a quorum, no committed record is lost, and once all is well again it works."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.raft.witness import CHANGING, RESTLESS, Plan, live, restless

VERBS = sorted({*CHANGING, *RESTLESS, "run", "isolate", "cut", "heal", "pause", "resume", "lost", "resign", "snapshot"})

step = st.tuples(st.sampled_from(VERBS), st.integers(1, 7), st.integers(0, 1_500))
plans = st.builds(
    Plan,
    seed=st.integers(0, 1 << 32),
    size=st.sampled_from([3, 3, 5, 2, 1]),
    observers=st.integers(0, 2),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    twice=st.sampled_from([0.0, 0.2]),
    delay_max_ms=st.sampled_from([1, 10, 200]),
    sync_max_ms=st.sampled_from([1, 20, 300]),
    fetch_bytes_max=st.sampled_from([1, 1 << 20]),
    steps=st.lists(step, max_size=60).map(tuple),
)


@given(plan=plans)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_history_keeps_the_promises_of_the_quorum(plan: Plan) -> None:
    live(plan)


@pytest.mark.parametrize("seed", range(12))
def test_elections_without_end_keep_the_promises_of_the_quorum(seed: int) -> None:
    live(restless(seed))


@pytest.mark.parametrize("seed", range(12))
def test_voters_come_and_go(seed: int) -> None:
    live(restless(seed, CHANGING, observers=2))
