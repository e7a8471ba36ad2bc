"""A lane for each cluster: a thread that runs its loop, so that a cluster that does not answer delays no other.

News of a cluster wakes its lane; without any, the loop says when to look again. A lane ends after a turn that finds no
KafkaCluster, so that names which nobody has keep no cluster from a lane; where all lanes are taken, a cluster waits for
the next that ends.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kavka_operator.loop.cluster_loop import ClusterLoop, HopelessError
from kavka_operator.loop.mishaps import describe

LANES_MAX = 500
WAITING_MAX = 100_000
PAUSE_SECONDS = 5.0
NEWS_SECONDS = 0.05  # what is applied together comes as many pieces of news

ClusterKey = tuple[str, str]


@dataclass(slots=True)
class Lanes:
    """The lanes of all clusters. `loop_of` makes the loop of one; `is_there` tells whether it has a KafkaCluster."""

    loop_of: Callable[[ClusterKey], ClusterLoop]
    is_there: Callable[[ClusterKey], bool]
    tell: Callable[[str], None]
    _lanes: dict[ClusterKey, "_Lane"] = field(default_factory=dict)
    _waiting: dict[ClusterKey, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False

    def wake(self, cluster: ClusterKey) -> None:
        """Let a cluster be looked at soon; its lane begins with its first news."""
        with self._lock:
            if self._is_closed:
                return
            if cluster in self._lanes:
                self._lanes[cluster].news.set()
            elif len(self._lanes) < LANES_MAX:
                self._begin(cluster)
            elif cluster not in self._waiting:
                assert len(self._waiting) < WAITING_MAX, "more clusters than this operator is made for"
                self._waiting[cluster] = None
                self.tell(f"KafkaCluster {'/'.join(cluster)} waits: {LANES_MAX} clusters are looked after")

    def hurry(self, cluster: ClusterKey) -> None:
        """Let a cluster that is looked after be looked at at once: its nodes have news."""
        with self._lock:
            lane = self._lanes.get(cluster)
        if lane is not None:
            lane.loop.hurry()
            lane.news.set()

    def _begin(self, cluster: ClusterKey) -> None:
        lane = self._lanes[cluster] = _Lane(self.loop_of(cluster), lambda: self._is_over(cluster), self.tell)
        lane.thread = threading.Thread(target=lane.run, name=f"cluster {'/'.join(cluster)}", daemon=True)
        lane.thread.start()

    def close(self, seconds: float) -> None:
        """End every lane; those that wait for answers still after so many seconds in all end with the process."""
        with self._lock:
            self._is_closed = True
            lanes = list(self._lanes.values())
        for lane in lanes:
            lane.is_closed = True
            lane.news.set()
        deadline = time.monotonic() + seconds
        for lane in lanes:
            assert lane.thread is not None, "a lane is noted with its thread"
            lane.thread.join(max(0.0, deadline - time.monotonic()))

    def _is_over(self, cluster: ClusterKey) -> bool:
        """Whether the lane of a cluster has nothing left to look after; its place is the next one's then."""
        with self._lock:
            if self._is_closed or self.is_there(cluster) or self._lanes[cluster].news.is_set():
                return self._is_closed
            del self._lanes[cluster]
            for following in list(self._waiting)[:1]:
                del self._waiting[following]
                self._begin(following)
            return True


@dataclass(slots=True)
class _Lane:
    loop: ClusterLoop
    is_over: Callable[[], bool]
    tell: Callable[[str], None]
    news: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    is_closed: bool = False

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
        try:
            question = self.loop.due()
            if question is not None:
                self.loop.follow(self.loop.look(question))
        except HopelessError as error:
            self.tell(str(error))
            return PAUSE_SECONDS
        except Exception as error:  # noqa: BLE001 - a fault costs this cluster a pause, and no other anything
            self.tell(describe(error))
            return PAUSE_SECONDS
        return self.loop.seconds_left
