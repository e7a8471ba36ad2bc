"""Whether Kubernetes would take the pods of a cluster: the API server is asked by a dry run, before anything is done.

What a pool asks of its pods the operator does not judge. A pool whose template is about to change is tried once, with
one of its nodes; one that was refused is tried again after a while, as the reason may be elsewhere (a policy, a quota).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kavka_kubernetes.platform.api import Api, ApiError, Bridge, Document

REFUSALS = {400, 403, 422}
"""The codes of an answer that is about what was asked, and not about the server or the moment."""

AGAIN_SECONDS = 10.0


@dataclass(slots=True)
class Rehearsal:
    """The newest template of each pool that was tried, and what the API server said."""

    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    _tried: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """By pool: the fingerprint, why it was refused or nothing, and when."""

    def refusals(self, wanted: Iterable[tuple[str, str, Document]]) -> list[str]:
        """Words in which templates are refused. Each is a pool, a fingerprint, and a StatefulSet. Raises ApiError."""
        return [words for pool, mark, manifest in wanted if (words := self._refusal(pool, mark, manifest))]

    def _refusal(self, pool: str, mark: str, manifest: Document) -> str:
        known = self._tried.get(pool)
        if known is not None and known[0] == mark and (not known[1] or self.clock() - known[2] < AGAIN_SECONDS):
            return known[1]
        words = self._try(pool, manifest)
        self._tried[pool] = (mark, words, self.clock())
        return words

    def _try(self, pool: str, manifest: Document) -> str:
        try:
            self.bridge.wait(self.api.rehearse(manifest))
        except ApiError as error:
            if error.status not in REFUSALS:
                raise
            return f'spec.nodePools "{pool}": Kubernetes does not take its pods: {error}'
        return ""
