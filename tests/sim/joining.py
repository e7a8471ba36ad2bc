"""Who comes into the in-sync set: a follower that has all that is committed, at the moment when it is proposed.

Until the controller has agreed it has most often caught up with what it lacked, so that the in-sync set in the image
shows nothing; and where the leader dies just then, the records are gone.
"""

from collections.abc import Mapping
from typing import Any, Final

from tests.sim.invariants import Invariants
from tests.sim.observed import place_of

#: What a broker says that gives up a log.
ANEW: Final = ("replica.restarted", "directory.lost", "directory.failed", "stray.moved", "partition.not_opened")


def joins_complete(invariants: Invariants, process: str, fields: Mapping[str, Any]) -> None:
    """JoinsComplete: of what a leader says as it proposes followers.

    Left out is what the controller refuses: a proposal from a state that is over, or of one that begins again. Of that
    not every step shows, so it is judged in runs in which nobody has begun again or lost anything yet.
    """
    if "added" not in fields:
        return
    counts = invariants.simulation.events.counts
    if any(counts[event] for event in ANEW) or invariants.has_losses:
        return
    node = next(other for other in invariants.simulation.nodes if other.process.name == process)
    leader = next(replica for replica in node.broker.partitions if str(replica) == fields["partition"])
    place = place_of(leader.topic, leader.topic_id, leader.index)
    state, truth = invariants.partition_state(place), invariants.truths.get(place)
    if state is None or truth is None or place[0] in invariants.may_lose or leader.state != state:
        return
    for seen in invariants.seen_at(place):
        is_in_question = seen.node_id in fields["added"] and not invariants.is_lossy(seen.node_id)
        if is_in_question and seen.epoch == state.leader_epoch and seen.view.end_offset < truth.end_offset:
            invariants.simulation.fail(f"JoinsComplete: {seen} is proposed; committed up to {truth.end_offset}")
