"""Defects of who has the next turn on a broker's loop."""

from kavka_broker.core.fair_queueing import FairQueue
from kavka_broker.loop.turns import Turns
from tests.sim.teething import Patch, tooth


@tooth("the queue of those who wait for a turn is served once, and not again", "reset", 5, workloads="greedy")
def turns_not_armed_again(patch: Patch) -> None:
    serve = Turns._serve

    def serve_once(self: Turns) -> None:
        self._arm, before = lambda: None, self._arm  # type: ignore[method-assign]
        try:
            serve(self)
        finally:
            self._arm = before  # type: ignore[method-assign]

    patch.setattr(Turns, "_serve", serve_once)


@tooth("what a client has had of the loop does not count", "reset", 5, workloads="greedy")
def turns_that_cost_nothing(patch: Patch) -> None:
    patch.setattr(FairQueue, "charge", lambda *_: None)


@tooth("the first turn of a connection is charged to its client alone", "reset", 10, workloads="greedy")
def turns_of_newcomers_cost_nothing(patch: Patch) -> None:
    patch.setattr(Turns, "charge_too", lambda *_: None)
