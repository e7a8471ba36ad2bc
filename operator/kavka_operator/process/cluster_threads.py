"""A thread for each cluster, its lane, which runs its loop: a cluster that does not answer delays no other.

News of a cluster wakes its lane; without any, the loop says when to look again. A lane ends after a turn that finds no
KafkaCluster, so that names which nobody has keep no cluster from a lane; where all lanes are taken, a cluster waits for
the next that ends.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kavka_operator.domain.cluster_view import View
from kavka_operator.loop.cluster_loop import ClusterLoop, HopelessError
from kavka_operator.loop.observer import LookResult, Question
from kavka_operator.loop.unexpected_errors import describe

LANES_MAX = 500
WAITING_MAX = 100_000
PAUSE_SECONDS = 5.0
NEWS_SECONDS = 0.05  # resources applied together arrive as many pieces of news

ClusterKey = tuple[str, str]


class Watch(Protocol):
    """Receives what becomes of the turns of lanes, on each lane's thread."""

    def looked(self, cluster: ClusterKey, seconds: float, result: LookResult) -> None:
        """Note that a look has been taken."""
        ...

    def acted(self, seconds: float) -> None:
        """Note that a look's actions are done."""
        ...

    def failed(self, cluster: ClusterKey) -> None:
        """Note that a turn has failed."""
        ...

    def ended(self, cluster: ClusterKey) -> None:
        """Note that the cluster is no longer looked after."""
        ...


@dataclass(slots=True)
class ClusterThreads:
    """The lanes of all clusters. `loop_of` makes the loop of one; `is_there` tells whether it has a KafkaCluster."""

    loop_of: Callable[[ClusterKey], ClusterLoop]
    is_there: Callable[[ClusterKey], bool]
    tell: Callable[[str], None]
    watch: Watch | None = None
    lanes_max: int = LANES_MAX
    pause_seconds: float = PAUSE_SECONDS
    """After a turn that has failed."""
    clock: Callable[[], float] = time.monotonic
    lanes: dict[ClusterKey, "_ClusterThread"] = field(default_factory=dict)
    _waiting: dict[ClusterKey, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False

    def wake(self, cluster: ClusterKey) -> None:
        """Have a cluster looked at soon; its lane begins with its first news."""
        with self._lock:
            if self._is_closed:
                return
            if cluster in self.lanes:
                self.lanes[cluster].news.set()
            elif len(self.lanes) < self.lanes_max:
                self._begin(cluster)
            elif cluster not in self._waiting:
                assert len(self._waiting) < WAITING_MAX, "more clusters than this operator is made for"
                self._waiting[cluster] = None
                self.tell(f"KafkaCluster {'/'.join(cluster)} waits: {self.lanes_max} clusters are looked after")

    def hurry(self, cluster: ClusterKey) -> None:
        """Have a cluster's next look begin now: its nodes have news."""
        with self._lock:
            lane = self.lanes.get(cluster)
        if lane is not None:
            lane.loop.hurry()
            lane.news.set()

    def view_of(self, cluster: ClusterKey) -> View | None:
        """The nodes of a cluster as its lane has last seen them; None where it has no lane."""
        with self._lock:
            lane = self.lanes.get(cluster)
        return lane.loop.view if lane is not None else None

    @property
    def count(self) -> int:
        """The number of clusters that are looked after."""
        return len(self.lanes)

    @property
    def waiting(self) -> int:
        """The number of clusters that wait for a lane."""
        return len(self._waiting)

    def busy_seconds(self) -> dict[ClusterKey, float]:
        """The age of each turn that is under way."""
        now = time.monotonic()
        with self._lock:
            began = {cluster: lane.began for cluster, lane in self.lanes.items()}
        return {cluster: now - at for cluster, at in began.items() if at is not None}

    def _begin(self, cluster: ClusterKey) -> None:
        over, tell = (lambda: self._is_over(cluster)), self.tell
        lane = self.lanes[cluster] = _ClusterThread(
            cluster, self.loop_of(cluster), over, tell, self.watch, self.pause_seconds
        )
        lane.thread = threading.Thread(target=lane.run, name=f"cluster {'/'.join(cluster)}", daemon=True)
        lane.thread.start()

    def close(self, seconds: float) -> bool:
        """End every lane; whether all have ended. Those that wait for answers after so many seconds in all may act
        still, until the process ends.
        """
        with self._lock:
            self._is_closed = True
            lanes = list(self.lanes.values())
        for lane in lanes:
            lane.is_closed = True
            lane.news.set()
        deadline = self.clock() + seconds
        for lane in lanes:
            assert lane.thread is not None, "a lane is noted with its thread"
            lane.thread.join(max(0.0, deadline - self.clock()))
        return not any(lane.thread is not None and lane.thread.is_alive() for lane in lanes)

    def _is_over(self, cluster: ClusterKey) -> bool:
        """Whether the lane of a cluster has nothing left to look after; its place is the next one's then."""
        with self._lock:
            if self._is_closed or self.is_there(cluster) or self.lanes[cluster].news.is_set():
                return self._is_closed
            del self.lanes[cluster]
            if self.watch is not None:
                self.watch.ended(cluster)
            for following in list(self._waiting)[:1]:
                del self._waiting[following]
                self._begin(following)
            return True


@dataclass(slots=True)
class _ClusterThread:
    cluster: ClusterKey
    loop: ClusterLoop
    is_over: Callable[[], bool]
    tell: Callable[[str], None]
    watch: Watch | None
    pause_seconds: float
    news: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    is_closed: bool = False
    began: float | None = None  # of the turn under way
    said: str = ""  # of what keeps it from looking: told once, not at each turn

    def run(self) -> None:
        """Look whenever a look is due, until nothing is left to look after."""
        try:
            while not self.is_closed:
                self.news.clear()
                pause = self._turn()
                if self.is_over():
                    return
                if self.news.wait(pause):
                    threading.Event().wait(NEWS_SECONDS)
        finally:
            self.loop.close()

    def _turn(self) -> float:
        """Look if a look is due; the seconds until the next."""
        self.began = time.monotonic()
        try:
            question = self.loop.due()
            if question is not None:
                self._look(question)
        except HopelessError as error:
            return self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - a fault costs this cluster a pause, and no other anything
            return self._fail(describe(error))
        finally:
            self.began = None
        return self.loop.seconds_left

    def _look(self, question: Question) -> None:
        began = time.monotonic()
        result = self.loop.look(question)
        looked = time.monotonic()
        if self.watch is not None:
            self.watch.looked(self.cluster, looked - began, result)
        if self.is_closed:
            return  # another operator may act by now
        self.loop.follow(result)
        self.said = ""
        if self.watch is not None:
            self.watch.acted(time.monotonic() - looked)

    def _fail(self, words: str) -> float:
        if words != self.said:
            self.tell(words)
        self.said = words
        if self.watch is not None:
            self.watch.failed(self.cluster)
        return self.pause_seconds
