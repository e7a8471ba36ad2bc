"""Which replica leads a partition.

The leader stays as long as it may lead (unless the preferred replica is asked for); otherwise the first replica in sync
leads; where none is in sync, the first eligible (KIP-966); then the last leader that was known, when it is back; then,
where the topic allows it, any replica that lives. The last two are unclean: records that were acknowledged may be lost.
"""

from collections.abc import Callable
from typing import Final

from kavka_broker.core.metadata.decide.election_policy import Rules
from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState

__all__ = ["NOBODY", "Usable", "elect", "usable_in"]

#: Whether this broker may hold the partition in sync, and lead it.
Usable = Callable[[PartitionState, int], bool]

NOBODY: Final = -1


def usable_in(brokers: Brokers, *, back: int = NOBODY, gone: int = NOBODY) -> Usable:
    """Usable brokers: unfenced, not in controlled shutdown, with the replica in a directory that is online.

    `back` counts as unfenced already, `gone` as gone.
    """

    def usable(state: PartitionState, broker_id: int) -> bool:
        registration = brokers.get(broker_id)
        if registration is None or broker_id == gone:
            return False
        return (registration.usable or broker_id == back) and registration.has_online(state.directory_of(broker_id))

    return usable


def elect(state: PartitionState, rules: Rules, usable: Usable, *, preferred: bool) -> int:
    """Return the id of the replica that is to lead, -1 where none may. `preferred`: the first one if it may."""
    clean = state.isr or state.elr
    order = [state.leader, *state.replicas]
    if preferred:
        order.insert(0, state.replicas[0])
    for broker_id in order:
        if broker_id in clean and usable(state, broker_id):
            return broker_id
    if not clean and len(state.last_known_elr) == 1:
        (last,) = state.last_known_elr
        if last in state.replicas and usable(state, last):
            return last
    if rules.unclean_election:
        return next((replica for replica in state.replicas if usable(state, replica)), NO_LEADER)
    return NO_LEADER
