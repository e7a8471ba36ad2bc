"""A lane for each cluster: woken by news, ended when nothing is left, none waits for another."""

import queue
import threading
from types import SimpleNamespace as Bag
from typing import Any

import pytest

from kavka_operator.loop.cluster_loop import ClusterLoop, HopelessError
from kavka_operator.process.cluster_threads import ClusterKey, ClusterThreads

ONE, TWO = ("default", "one"), ("default", "two")
SECONDS_MAX = 60.0


class Loops:
    """Loops that tell each look in a queue; `gate` keeps the look of a cluster from ending."""

    def __init__(self) -> None:
        self.begun, self.looks = queue.Queue[ClusterKey](), queue.Queue[ClusterKey]()
        self.closed = queue.Queue[ClusterKey]()
        self.gates: dict[ClusterKey, threading.Event] = {}
        self.errors: dict[ClusterKey, Exception] = {}
        self.wanted = {ONE, TWO}
        self.told = list[str]()
        self.lanes = ClusterThreads(self.loop_of, lambda cluster: cluster in self.wanted, self.told.append)

    def loop_of(self, cluster: ClusterKey) -> Any:
        return Bag(
            due=lambda: cluster,
            look=self.look,
            follow=self.follow,
            seconds_left=1000.0,
            close=lambda: self.closed.put(cluster),
        )

    def look(self, cluster: ClusterKey) -> ClusterKey:
        self.begun.put(cluster)
        if cluster in self.gates:
            self.gates[cluster].wait(SECONDS_MAX)
        return cluster

    def follow(self, cluster: ClusterKey) -> None:
        self.looks.put(cluster)
        if cluster in self.errors:
            raise self.errors[cluster]

    def next(self) -> ClusterKey:
        return self.looks.get(timeout=SECONDS_MAX)


def test_a_cluster_that_does_not_answer_delays_no_other() -> None:
    loops = Loops()
    loops.gates[ONE] = threading.Event()
    loops.lanes.wake(ONE)
    loops.lanes.wake(TWO)
    assert loops.next() == TWO
    loops.gates[ONE].set()
    assert loops.next() == ONE
    loops.lanes.close(SECONDS_MAX)
    assert {loops.closed.get_nowait(), loops.closed.get_nowait()} == {ONE, TWO}


def test_news_that_comes_during_a_look_makes_another() -> None:
    loops = Loops()
    gate = loops.gates[ONE] = threading.Event()
    loops.lanes.wake(ONE)
    loops.begun.get(timeout=SECONDS_MAX)
    loops.lanes.wake(ONE)
    gate.set()
    assert [loops.next(), loops.next()] == [ONE, ONE]
    loops.lanes.close(SECONDS_MAX)


def test_a_lane_ends_when_nothing_is_left_and_begins_again_with_news() -> None:
    loops = Loops()
    loops.lanes.wake(ONE)
    loops.next()
    loops.wanted.remove(ONE)
    loops.lanes.wake(ONE)
    assert loops.closed.get(timeout=SECONDS_MAX) == ONE
    loops.wanted.add(ONE)
    loops.lanes.wake(ONE)
    assert loops.next() == ONE
    loops.lanes.close(SECONDS_MAX)


@pytest.mark.parametrize("error", [HopelessError("mend it"), RuntimeError("no such thing")])
def test_no_fault_ends_a_lane(error: Exception) -> None:
    loops = Loops()
    loops.lanes.pause_seconds = 0.0
    loops.errors[ONE] = error
    loops.lanes.wake(ONE)
    assert [loops.next(), loops.next(), loops.next()] == [ONE, ONE, ONE]
    loops.lanes.close(SECONDS_MAX)
    assert len(loops.told) == 1, "what is told already is not told at each turn"
    assert str(error) in loops.told[0]


def test_no_more_clusters_than_lanes() -> None:
    loops = Loops()
    loops.lanes.lanes_max = 1
    loops.gates[ONE] = threading.Event()
    loops.lanes.wake(ONE)
    loops.lanes.wake(TWO)
    loops.lanes.wake(TWO)
    assert loops.told == ["KafkaCluster default/two waits: 1 clusters are looked after"]
    assert loops.begun.get(timeout=SECONDS_MAX) == ONE
    loops.wanted.remove(ONE)
    loops.gates[ONE].set()
    assert [loops.next(), loops.next()] == [ONE, TWO], "the place of the one that is over"
    loops.lanes.close(SECONDS_MAX)


def test_a_name_that_no_cluster_has_is_looked_at_once_and_keeps_no_lane() -> None:
    loops = Loops()
    loops.wanted.remove(ONE)
    loops.lanes.wake(ONE)
    assert loops.next() == ONE
    assert loops.closed.get(timeout=SECONDS_MAX) == ONE
    assert loops.lanes.lanes == {}


class Endless(threading.Thread):
    """A thread that is not waited for; `waits` are the seconds for which it would have been."""

    def __init__(self, waits: list[float]) -> None:
        super().__init__()
        self.waits = waits

    def join(self, timeout: float | None = None) -> None:
        assert timeout is not None
        self.waits.append(timeout)


def test_the_wait_for_lanes_that_do_not_end_is_one_for_all_of_them() -> None:
    loops, waits = Loops(), list[float]()
    for cluster in (ONE, TWO):
        loops.gates[cluster] = threading.Event()
        loops.lanes.wake(cluster)
        loops.begun.get(timeout=SECONDS_MAX)
    seconds = iter((100.0, 101.0, 106.0))
    threads = [lane.thread for lane in loops.lanes.lanes.values()]
    for lane in loops.lanes.lanes.values():
        lane.thread = Endless(waits)
    loops.lanes.clock = lambda: next(seconds)
    loops.lanes.close(5.0)
    assert waits == [4.0, 0.0]
    for cluster, thread in zip((ONE, TWO), threads, strict=True):
        assert thread is not None
        loops.gates[cluster].set()
        thread.join(SECONDS_MAX)


def test_a_real_loop_fits_a_lane() -> None:
    assert {"due", "look", "follow", "seconds_left", "close"} <= set(dir(ClusterLoop))


def test_what_a_look_found_is_not_acted_on_after_the_lanes_were_closed() -> None:
    loops = Loops()
    gate = loops.gates[ONE] = threading.Event()
    loops.lanes.wake(ONE)
    assert loops.begun.get(timeout=SECONDS_MAX) == ONE
    assert not loops.lanes.close(0.0), "its look is under way"
    gate.set()
    assert loops.closed.get(timeout=SECONDS_MAX) == ONE
    assert loops.lanes.close(SECONDS_MAX)
    assert loops.looks.empty(), "another operator may act by now"
