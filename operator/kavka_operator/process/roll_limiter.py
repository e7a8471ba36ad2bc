"""Clusters are rolled in turn: so many at the same time and no more, where that was asked for.

A new version of the operator, or of an image that many clusters have by default, is a roll of each of them. A cluster
takes its turn with the first node that it restarts and keeps it until its roll is over; one that has stopped keeps it
too, so that what goes wrong goes wrong in few clusters. A node that serves nobody is restarted without a turn.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.name_lists import some
from kavka_operator.domain.plan import NodeAction, RestartNode
from kavka_operator.loop.interfaces import Platform
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey

LOOKS_UNTOLD = 2


@dataclass(slots=True)
class Turns:
    """The clusters that are being rolled: at most `most`, or any number where that is 0. `is_there` knows clusters."""

    most: int
    is_there: Callable[[ClusterKey], bool]
    _rolling: set[ClusterKey] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, cluster: ClusterKey, *, has_begun: bool = False) -> bool:
        """Let a cluster be rolled; whether it may be. One that `has_begun` goes on."""
        with self._lock:
            self._rolling = {other for other in self._rolling if other == cluster or self.is_there(other)}
            if has_begun or not self.most or cluster in self._rolling or len(self._rolling) < self.most:
                self._rolling.add(cluster)
            return cluster in self._rolling

    def give_back(self, cluster: ClusterKey) -> None:
        """Note that the roll of a cluster is over."""
        with self._lock:
            self._rolling.discard(cluster)

    def first(self, cluster: ClusterKey) -> str:
        """Words for the clusters that are rolled before this one; empty where it may be rolled now."""
        with self._lock:
            rolling = sorted(other for other in self._rolling if self.is_there(other))
        if not self.most or cluster in rolling or len(rolling) < self.most:
            return ""
        return f"the end of the roll of {some(['/'.join(other) for other in rolling])}"


@dataclass(slots=True)
class InTurn:
    """A `Platform` whose cluster is rolled in turn with others."""

    cluster: ClusterKey
    inner: Platform
    turns: Turns
    _alive: frozenset[int] = frozenset()
    _is_told: bool = False  # the status has told of the roll that the turn was taken for
    _looks_left: int = 0  # before the status can tell of a roll that has just begun

    def look(self, cluster: KafkaCluster) -> View:
        """The nodes, with the clusters that their restarts wait for."""
        view = self.inner.look(cluster)
        roll = cluster.status.roll
        if roll is not None and (roll.current or roll.done):
            self._is_told, self._looks_left = self.turns.take(self.cluster, has_begun=True), 0
        elif self._looks_left:
            self._looks_left -= 1
        elif self._is_told or not _is_stale(view):
            self._is_told = False
            self.turns.give_back(self.cluster)
        self._alive = frozenset(number for number, node in view.seen.items() if node.is_alive)
        if not (words := self.turns.first(self.cluster)):
            return view
        return replace(view, seen={number: replace(node, queued=words) for number, node in view.seen.items()})

    def perform(self, action: NodeAction) -> None:
        """Begin an action. A restart out of turn is not begun: the next look tells what it waits for."""
        if isinstance(action, RestartNode) and action.node in self._alive:
            if not self.turns.take(self.cluster):
                return
            self._looks_left = LOOKS_UNTOLD
        self.inner.perform(action)

    def allow(self, cluster: KafkaCluster, nodes: frozenset[int]) -> bool:
        """Let others take these nodes away, and no other."""
        return self.inner.allow(cluster, nodes)


def _is_stale(view: View) -> bool:
    """Whether a node is to be restarted."""
    marks = {node.id: node.fingerprint for node in view.wanted}
    return any(node.fingerprint != marks[number] for number, node in view.seen.items() if number in marks)
