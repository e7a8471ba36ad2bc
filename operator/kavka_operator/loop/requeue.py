"""Decides how soon a cluster is reconciled again: at once while nodes come and go, seldom where nothing moves."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kavka_operator.api.quota import ClientQuota
from kavka_operator.domain.plan import ClusterPlan, Plan

DRIFT_SECONDS = 5.0
DRIFT_SECONDS_MAX = 60.0
LOOKS_APART = 20.0  # seconds of rest for a second of look: one at thousands of resources takes a while
DIVIDING_LOOKS_APART = 4.0
RETRY_SECONDS = 1.0
HASTE_SECONDS = 0.2
HASTY_LOOKS_MAX = 100  # that found what the look before had found: 20 seconds


def rest_seconds(took: float, limited: Sequence[ClientQuota]) -> float:
    """The seconds between two looks at rest; fewer where a budget of the whole cluster has to follow the traffic."""
    is_dividing = any(quota.spec.scope == "Cluster" for quota in limited)
    return max(DRIFT_SECONDS, min((DIVIDING_LOOKS_APART if is_dividing else LOOKS_APART) * took, DRIFT_SECONDS_MAX))


@dataclass(slots=True)
class Haste:
    """Haste while a plan changes from look to look; a roll that waits for hours is not worth five looks a second."""

    _last: ClusterPlan = field(default_factory=Plan)
    _unmoved: int = 0

    def seconds(self, plan: ClusterPlan) -> float:
        """The seconds until the next look, where this one has found more to do."""
        self._unmoved = self._unmoved + 1 if plan == self._last and not plan.actions else 0
        self._last = plan
        return HASTE_SECONDS if self._unmoved < HASTY_LOOKS_MAX else RETRY_SECONDS
