"""Whatever happens to a quorum, no committed record is lost, and once all is well again it works."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kavka_broker.core.raft import election, leader, replicas
from kavka_broker.core.raft.quorum_state import NOBODY, QuorumState
from kavka_broker.core.raft.roles import Leader
from kavka_broker.protocol.messages.vote_request import PartitionData
from tests.property.raft.witness import Plan, Violation, Witness, live
from tests.unit.raft.world import Process

VERBS = (
    ["run"] * 6 + ["append"] * 4 + ["crash", "start"] * 3 + ["isolate", "cut", "heal", "pause", "resume"]
) + ["lost", "resign", "snapshot", "snapshot", "add", "remove"]

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
    steps=st.lists(step, max_size=60).map(tuple),
)


@given(plan=plans)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_history(plan: Plan) -> None:
    live(plan)
