"""The properties find what they are there for: each rule of the quorum, taken out by the test, loses records.

Each has the kind of history in which it shows, and shows in one of 2 to 150 of them; `HISTORIES_MAX` is how many are
tried. The changes of the voters need more luck than that (1 in 400), and have histories of their own.
"""

from collections.abc import Callable
from typing import Any

import pytest

from kavka_broker.core.raft import election, follower, leader, voter_changes
from kavka_broker.core.raft.log_view import Agrees, LogView, Standing, standing
from kavka_broker.core.raft.node_state import NodeState
from kavka_broker.core.raft.quorum_state import NOBODY, QuorumState
from kavka_broker.core.raft.roles import Leader
from kavka_broker.protocol.errors import ErrorCode
from tests.property.raft.witness import (
    DYING,
    Plan,
    Violation,
    Witness,
    change_voters,
    happen,
    heal,
    restless,
    take,
)
from tests.unit.raft.world import Process

pytestmark = pytest.mark.thorough

HISTORIES_MAX = 400
#: A committed record is gone, and a node notices first.
LOST = {"LeaderCompleteness", "NoCommittedRecordLost", "MajorityReachedHighWatermark"}


def slow_disks(seed: int) -> Plan:
    return restless(seed, size=3, loss=0.05, delay_max_ms=5, sync_max_ms=100)


def dying(seed: int) -> Plan:
    return restless(seed, DYING, size=3, loss=0.05, delay_max_ms=50, sync_max_ms=1)


def found(plan: Callable[[int], Plan] = restless, kind: type[Witness] = Witness) -> str:
    """The name of the invariant that the first history breaks which breaks any."""
    for seed in range(HISTORIES_MAX):
        try:
            happen(plan(seed), kind)
        except Violation as violation:
            return str(violation).partition(":")[0]
    return f"none in {HISTORIES_MAX} histories"


class ForgetfulDisk(Witness):
    """The vote is not on the disk when it is given."""

    def persisted(self, process: Process, state: QuorumState) -> QuorumState:
        return state if state.leader_id != NOBODY else QuorumState(state.leader_epoch)


def test_a_vote_that_is_not_persisted() -> None:
    assert found(dying, ForgetfulDisk) == "ElectionSafety"


def test_a_high_watermark_that_moves_over_records_of_a_former_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "covers_own_epoch", lambda role, offset: True)
    assert found(slow_disks) in LOST


def test_a_fetch_that_acknowledges_what_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_written(node: NodeState) -> bool:
        return node.adopting is None and node.end_offset == node.log.end_offset

    monkeypatch.setattr(follower, "is_synced", is_written)
    assert found() == "MajorityReachedHighWatermark"


def test_a_vote_for_a_shorter_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_free(node: NodeState, asked: Any) -> bool:
        return asked.pre_vote or (node.state.voted_id in {NOBODY, asked.replica_id} and node.state.leader_id < 0)

    monkeypatch.setattr(election, "may_vote_for", is_free)
    assert found() in LOST


def test_a_log_that_is_not_cut_where_it_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_offset(log: LogView, offset: int, epoch: int) -> Standing:
        return Agrees() if log.start_offset <= offset <= log.end_offset else standing(log, offset, epoch)

    monkeypatch.setattr(leader, "standing", by_offset)
    assert found() in {"LogMatching", *LOST}


def settled(size: int, observers: int) -> Witness:
    """A quorum at peace, on a network that loses nothing."""
    return happen(
        Plan(
            seed=1,
            size=size,
            observers=observers,
            loss=0,
            twice=0,
            delay_max_ms=1,
            sync_max_ms=1,
            fetch_bytes_max=1 << 20,
            steps=(("run", 1, 300),),
        )
    )


def two_changes_at_once() -> Witness:
    """The leader adds nodes 4 and 5 while the two others hear of nothing: these are a majority of those they know."""
    world = settled(size=3, observers=2)
    leader = world.leader()
    assert leader is not None
    others = [world.processes[node_id] for node_id in (1, 2, 3) if node_id != leader.node_id]
    for other in others:
        world.isolate(other.node_id)
    for newcomer in (4, 5):
        change_voters(world, "add", world.processes[newcomer])
        world.run(20)
    first, second = others
    world.cut -= {(first.node_id, second.node_id), (second.node_id, first.node_id)}
    take(world, "blip", 1, 0)
    world.run(10_000)
    return world


def test_two_changes_of_the_voters_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heal(two_changes_at_once())

    def is_ready(_: NodeState, role: Leader) -> tuple[ErrorCode, str] | None:
        return None if role.is_established else (ErrorCode.REQUEST_TIMED_OUT, "")

    monkeypatch.setattr(voter_changes, "find_problem", is_ready)
    with pytest.raises(Violation) as violation:
        two_changes_at_once()
    assert str(violation.value).partition(":")[0] in LOST


def a_change_too_early() -> Witness:
    """The first leader adds node 5, and only node 5 hears of it. The second removes the first before it has committed
    anything, with one other's consent. The first, node 5 and the last of the old ones are three of the first's five.
    """
    world = settled(size=4, observers=1)
    first, newcomer = world.leader(), world.processes[5]
    assert first is not None
    others = [world.processes[node_id] for node_id in (1, 2, 3, 4) if node_id != first.node_id]
    for other in others:
        world.isolate(other.node_id)
    change_voters(world, "add", newcomer)
    world.run(20)
    world.crash(first.node_id)
    world.crash(newcomer.node_id)
    world.cut.clear()
    take(world, "blip", 1, 0)
    while world.leader() is None:
        world.run(1)
    second = world.leader()
    assert second is not None
    consenting, last = [one for one in others if one is not second]
    world.isolate(last.node_id)
    change_voters(world, "remove", first)
    world.run(20)
    world.cut.clear()
    world.crash(second.node_id)
    world.crash(consenting.node_id)
    first.start()
    newcomer.start()
    world.run(3_000)
    return world


def test_a_change_of_the_voters_before_the_leader_has_committed_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    heal(a_change_too_early())

    def is_ready(node: NodeState, role: Leader) -> tuple[ErrorCode, str] | None:
        is_settled = role.change is None and node.history.voters_offset < node.high_watermark
        return None if is_settled else (ErrorCode.REQUEST_TIMED_OUT, "")

    monkeypatch.setattr(voter_changes, "find_problem", is_ready)
    with pytest.raises(Violation) as violation:
        a_change_too_early()
    assert str(violation.value).partition(":")[0] in LOST
