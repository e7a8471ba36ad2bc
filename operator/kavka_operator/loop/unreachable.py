"""Computes the conditions of topics, quotas and users while their cluster is unreachable.

A broker that restarts or an election that is on may cost a look or two, and what was seen before them is still true
enough. A silence that lasts is another thing: nobody knows any more whether a topic is as it is wanted, so its Ready is
Unknown, until the cluster is seen again. The words have no clock in them, so that a silence costs one write a resource.
The KafkaCluster then says why nobody answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import ClusterPlan, Word, unknown
from kavka_operator.loop.observer import LookResult

REASON = "ClusterUnavailable"
NOT_ANSWERING = "NotAnswering"
SILENT_SECONDS = 30.0


@dataclass(slots=True)
class Unreachability:
    """For how long a cluster has not been seen; `clock` counts seconds."""

    clock: Callable[[], float]
    _since: float | None = None
    _why: tuple[str, float] | None = None
    """The last error that was told, and until when it is: errors that take turns do not each write a status."""

    def reasoned(self, plan: ClusterPlan, result: LookResult) -> ClusterPlan:
        """The plan, whose words say why no broker answers where that lasts: one that has just begun refuses, too."""
        if result.error is None or self._since is None or self.clock() - self._since < SILENT_SECONDS:
            self._why = None
            return plan
        if self._why is None or self.clock() >= self._why[1]:
            self._why = result.error, self.clock() + SILENT_SECONDS
        why = self._why[0]
        words = [
            replace(word, message=f"{word.message}: {why}") if word.reason == NOT_ANSWERING else word
            for word in plan.words
        ]
        return replace(plan, words=tuple(words))

    def words(self, cluster: KafkaCluster, result: LookResult, *, may_ask: bool) -> tuple[Word, ...]:
        """The words for topics and quotas of the cluster; empty where it answers, or did a short while ago."""
        if not may_ask:
            return unknown(REASON, f"{cluster.identity} cannot be asked; see its condition")
        if result.outcome is not None:
            self._since = None
            return ()
        if self._since is None:
            self._since = self.clock()
        if self.clock() - self._since < SILENT_SECONDS:
            return ()
        return unknown(REASON, f"{cluster.identity} does not answer; the rest of this status is what was seen before")
