"""Volumes that are smaller than a resource wants: they grow while their node runs, where their storage class allows it.

Kubernetes grows the disk behind a claim and then the file system on it. No volume shrinks.
"""

from collections.abc import Mapping, Sequence

from kavka_operator.domain.observed import SeenVolume
from kavka_operator.domain.plan import ClusterPlan, GrowVolume, Plan, reconciling


def growing(volumes: Mapping[int, Sequence[SeenVolume]]) -> tuple[GrowVolume, ...]:
    """The volumes, by node, that are too small."""
    small = [(number, volume) for number, found in sorted(volumes.items()) for volume in found]
    return tuple(GrowVolume(number, volume.name, volume.grows_to) for number, volume in small if volume.grows_to)


def grow(volumes: Mapping[int, Sequence[SeenVolume]]) -> ClusterPlan | None:
    """The plan that grows the volumes that are too small; None where there are none."""
    too_small = growing(volumes)
    return Plan(too_small, reconciling("Growing", "; ".join(map(str, too_small)))) if too_small else None
