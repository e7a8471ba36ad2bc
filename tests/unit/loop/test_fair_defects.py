"""What the queue of turns asserts of itself: a defect of ours is found where it is made."""

from collections.abc import Callable

import pytest

from kavka_broker.core import fair_queueing
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


def queued_twice() -> None:
    queue, flow = queued()
    queue._push(flow)
    flow.waiting["v"] = None
    queue.take()
    flow.is_queued = False
    queue.take()


def time_goes_back() -> None:
    queue, flow = queued()
    flow.used_ns -= 1
    queue.take()


def queued_for_nobody() -> None:
    queue = Queue()
    queue._push(queue.join("u", "c"))


def gone_and_forgotten() -> None:
    queue = Queue()
    first, second = queue.join("u", "c"), queue.join("u", "d")
    queue.leave(first)
    del queue._flows[first.name]
    queue._gone["x", "y", 1, ""] = None
    queue.leave(second)


DEFECTS: dict[str, Callable[[], object]] = {
    "a flow without a share": lambda: Queue().join("u", "c", weight=0),
    "a connection that leaves twice": left_twice,
    "a flow of another queue": left_elsewhere,
    "time that is given back": given_back,
    "a flow that is queued twice": queued_twice,
    "a flow that has had less than before": time_goes_back,
    "a flow in the queue of which nobody waits": queued_for_nobody,
    "a flow that is gone and forgotten": gone_and_forgotten,
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_found_where_it_is_made(what: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[what]()


def test_more_flows_that_are_gone_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queueing, "GONE_FLOWS_MAX", -1)
    queue = Queue()
    with pytest.raises(AssertionError):
        queue.leave(queue.join("u", "c"))
