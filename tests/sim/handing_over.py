"""How many partitions the brokers of a run hand over in one turn of their loops.

A slice of theirs is larger than all of a simulated cluster: nothing would ever wait for its turn.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from kavka_broker.loop import backlog

HANDOVERS_A_TURN: Final = backlog.SLICE_MAX


def drawn(seed: int) -> int:
    """Some seeds hand over one partition a turn, the others all at once."""
    return Random(f"handovers {seed}").choice((1, HANDOVERS_A_TURN, HANDOVERS_A_TURN, HANDOVERS_A_TURN))


@contextmanager
def slices_of(handovers_a_turn: int) -> Iterator[None]:
    """Cut the work of all nodes into slices of that size."""
    before, backlog.SLICE_MAX = backlog.SLICE_MAX, handovers_a_turn  # type: ignore[misc]
    try:
        yield
    finally:
        backlog.SLICE_MAX = before  # type: ignore[misc]
