"""What the queue of turns asserts of itself: a defect of ours is found where it is made."""

from collections.abc import Callable

import pytest

from kavka_broker.core.fair_queueing import FairQueue, Flow

Queue = FairQueue[str]


def queued() -> tuple[Queue, Flow[str]]:
    """A flow that waits for a turn."""
    queue = Queue()
    flow = queue.join("u", "c")
    queue.wait(flow, "w")
    return queue, flow


def left_twice() -> None:
    queue, flow = queued()
    queue.leave(flow)
    queue.leave(flow)


def left_elsewhere() -> None:
    queue, _ = queued()
    _, stranger = queued()
    queue.leave(stranger)


def given_back() -> None:
    queue, flow = queued()
    queue.charge(flow, -1)


def time_goes_back() -> None:
    queue, flow = queued()
    flow.used_ns -= 1
    queue.take()


DEFECTS: dict[str, Callable[[], object]] = {
    "a flow without a share": lambda: Queue().join("u", "c", weight=0),
    "a connection that leaves twice": left_twice,
    "a flow of another queue": left_elsewhere,
    "time that is given back": given_back,
    "a flow that has had less than before": time_goes_back,
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_found_where_it_is_made(what: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[what]()
