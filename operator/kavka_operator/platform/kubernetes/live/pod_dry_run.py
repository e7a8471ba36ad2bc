"""Whether Kubernetes would take the pods of a cluster: the API server is asked by dry runs, before anything is done.

What a pool asks of its pods the operator does not judge. A pool whose template is about to change is tried once, with
one of its nodes, and each node again right before its pod is taken down. The StatefulSet is tried, and the pod that it
will make: quotas, limits, priorities and the security of a namespace are asked of pods alone. Whatever the API server
answers but yes is a refusal of the pool; it is tried again after a while, as the reason may be elsewhere.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Bridge, Document
from kavka_operator.platform.kubernetes.objects.dry_run_pods import fits_in_place_of, pod_of, refused

AGAIN_SECONDS = 10.0
Trial = tuple[str, str, Document, Mapping[str, Any] | None]
"""A pool, a fingerprint, the StatefulSet of one of its nodes, and the pod that it is to take the place of."""


@dataclass(slots=True)
class Rehearsal:
    """The newest template of each pool that was tried, and what the API server said."""

    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    _tried: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """By pool: the fingerprint, why it was refused or nothing, and when."""

    def refusals(self, wanted: Iterable[Trial]) -> list[str]:
        """Words in which templates are refused. Raises ApiError where the API server does not answer."""
        return [words for trial in wanted if (words := self._refusal(trial))]

    def refusal(self, trial: Trial) -> str:
        """Words in which the template of a node is refused at this moment; empty where it is taken. Raises ApiError."""
        pool, mark, manifest, present = trial
        words = self._try(pool, manifest, present)
        self._tried[pool] = (mark, words, self.clock())
        return words

    def _refusal(self, trial: Trial) -> str:
        pool, mark = trial[:2]
        known = self._tried.get(pool)
        if known is not None and known[0] == mark and (not known[1] or self.clock() - known[2] < AGAIN_SECONDS):
            return known[1]
        return self.refusal(trial)

    def _try(self, pool: str, manifest: Document, present: Mapping[str, Any] | None) -> str:
        try:
            self.bridge.wait(self.api.rehearse(manifest))
            self.bridge.wait(self.api.rehearse_pod(pod_of(manifest)))
        except ApiError as error:
            if not error.status:
                raise
            return "" if fits_in_place_of(str(error), present) else refused(pool, str(error))
        return ""
