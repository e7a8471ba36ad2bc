"""What `flush.messages=1` promises: a record counts as committed once it is on the disks, and not before."""

from collections.abc import Iterator
from typing import Any

from tests.sim.invariants import METADATA, Seen, invariant


@invariant("CommittedIsSynced")
def committed_is_synced(invariants: Any, seen: Seen) -> Iterator[str]:
    """Else a loss of power everywhere takes what was acknowledged, or what a consumer has read."""
    before, high_watermark = seen.before, seen.high_watermark
    if not invariants.simulation.is_synced or seen.place == METADATA or before is None or before.life != seen.life:
        return
    if seen.leading_epoch is None or high_watermark <= before.high_watermark:
        return
    for batch in seen.view.below(high_watermark, high_watermark - 1):
        views = [view for (_, place), view in invariants.views.items() if place == seen.place]
        synced = [view.node_id for view in views if view.has(batch) and view.is_synced(batch)]
        _, least = invariants.counting(seen)
        if seen.node_id not in synced or len(synced) < least:
            yield f"{batch} is committed, and on the disks of nodes {synced} only"
