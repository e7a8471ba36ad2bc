"""Plays transactional producers and their coordinators by themselves; a fifth of other seeds has them beside others.

Coordinators are compared with what their logs say (`replays`), as they are and as cleanings leave them.

What their clients did and were told is judged by `tests/histories`. A judge that finds nothing proves nothing: with
producers of transaction version 1 it has to find what Jepsen found (`transaction_packets`), and with those of version 2
nothing.
"""

from dataclasses import replace
from functools import partial

import pytest

from kavka_broker.core.partition.transactions import Transactions
from tests.histories.judge import fatal
from tests.histories.operations import History
from tests.sim.cluster import Shape, Simulation
from tests.sim.coordinated import Coordinated
from tests.sim.shapes import alone, plain
from tests.sim.storm import storm
from tests.support.drawn import in_turn

WORKLOADS = ("coordinated",)
KINDS = ("kill", "isolate", "pause")
LATE_SEEDS = (2,)
VERIFICATION = "kavka.transaction.connection.verification.enable"
BY_LATE_ENDS = {"aborted-read", "dirty-read", "lost-write", "torn-transaction"}  # all of them in this seed


def coordinated(seed: int, nodes: int | None = None, workloads: tuple[str, ...] = WORKLOADS) -> Shape:
    """What the seed draws, with this workload alone."""
    return alone(seed, nodes, workloads)


@pytest.mark.parametrize("seed", [11, *in_turn([3, 6, 14], 3)])
def test_transactions_are_whole_and_once(seed: int) -> None:
    """11 found that nobody made the topic of offsets for a producer that was the first to commit any."""
    shape = replace(plain(coordinated(seed, 3)), pace=1)
    simulation = Simulation(seed, shape, partial(storm, kinds=KINDS))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    assert simulation.events.counts["played.coordinated_committed"] > 0
    assert simulation.events.counts["played.coordinated_aborted"] > 0


@pytest.mark.parametrize("seed", [5, 27, *in_turn([7300012, 7300029, 7400083], 3)])
def test_transactions_meet_every_fault_that_a_seed_draws(seed: int) -> None:
    """27 found that a snapshot of producers forgot the last batch of one that commits offsets in a transaction, 5 that
    EndTxn gave a producer of version 2 the epoch of the one of version 1 that had fenced it, and 7300012 that a leader
    committed alone by a min.insync.replicas that had been raised. With 7300029 the judge asked for records that a
    snapshot stood for. In 7400083 a snapshot of another partition of the same transactions was believed: its last batch
    was one of the log, and the log had a later one.
    """
    simulation = Simulation(seed, coordinated(seed), storm)
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    assert simulation.events.counts["played.coordinated_committed"] > 0


def test_what_a_cut_has_opened_again_is_unstable_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """7530011 found that a transaction stayed stable until the cut was sealed. With that planted it finds it again."""
    shape = coordinated(7530011, workloads=("transactions", "coordinated"))
    outcome = Simulation(7530011, shape, storm).run()
    assert outcome.failure is None, outcome.failure
    monkeypatch.setattr(Transactions, "doubt_from", lambda self, offset: None)
    failure = Simulation(7530011, shape, storm).run().failure
    assert failure is not None
    assert failure.startswith("StableIsSettled"), failure


@pytest.mark.parametrize("seed", in_turn([1, 2, 3, 4], 2))
def test_offsets_that_many_write_count_by_the_order_of_the_log(seed: int) -> None:
    shape = plain(coordinated(seed, 3, ("contended",)))
    simulation = Simulation(seed, shape, partial(storm, kinds=KINDS))
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    assert simulation.replays.taken > 0, "no cleaning has taken anything"


def with_late_ends(seed: int, *, former: bool, is_verified: bool = True) -> Simulation:
    """One node, so that nothing but late packets is between a producer and its coordinator."""
    shape = plain(coordinated(seed, 1))
    shape = replace(
        shape,
        settings={**shape.settings, VERIFICATION: str(is_verified).lower()},
        pace=1,
        seconds=30.0,
        has_former_producers=former,
    )
    return Simulation(seed, shape, partial(storm, kinds=("late_end",)))


def recorded(simulation: Simulation) -> History:
    (workload,) = simulation.workloads
    assert isinstance(workload, Coordinated)
    return workload.recorded


@pytest.mark.parametrize("seed", LATE_SEEDS)
def test_a_late_end_of_version_1_ends_the_next_transaction_and_the_judge_sees_it(seed: int) -> None:
    simulation = with_late_ends(seed, former=True, is_verified=False)
    outcome = simulation.run()
    assert outcome.faults["late_end"] > 0
    assert {anomaly.name for anomaly in fatal(recorded(simulation))} >= BY_LATE_ENDS, outcome.failure
    assert outcome.failure is None, "an ordinary seed expects of version 1 what it permits"


@pytest.mark.parametrize("seed", LATE_SEEDS)
def test_a_late_end_of_version_1_is_told_by_its_connection(seed: int) -> None:
    simulation = with_late_ends(seed, former=True)
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    assert not fatal(recorded(simulation)), "what version 1 permits does not happen here"
    assert simulation.events.counts["late_request.refused"] > 0


@pytest.mark.parametrize("seed", LATE_SEEDS)
def test_a_late_end_of_version_2_ends_nothing(seed: int) -> None:
    simulation = with_late_ends(seed, former=False)
    outcome = simulation.run()
    assert outcome.faults["late_end"] > 0
    assert outcome.failure is None, outcome.failure
    assert not fatal(recorded(simulation)), "nothing of version 2 is permitted to be lost"
