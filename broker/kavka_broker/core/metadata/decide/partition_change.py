"""How a partition settles after something happened to it: every decision about partitions comes through here.

A decision says what it wants as another `PartitionState`: a smaller ISR, other replicas. `settle` makes of it what may
be true, and `difference` the record that makes it so. The rules, in the order in which they apply:

1. A reassignment whose new replicas are all in sync is complete: the ones to be removed leave.
2. Eligible leader replicas (KIP-966): the high watermark stands still while fewer than `min.insync.replicas` are in
   sync, so a replica that leaves the ISR then still has all that is committed, and may lead again without loss. Not
   so a replica that stopped uncleanly (`lost`): the end of its log may be gone. With enough replicas in sync the
   list is empty.
3. The leader stays as long as it may lead, and otherwise another is elected (`leader_election`).
4. A leader elected from outside the ISR is the whole ISR, and after an unclean election no other replica is eligible.
5. When the last in-sync replica goes, the last leader is remembered, until the partition has a leader again.

A new leader is a new leader epoch. So is the departure of a replica from the assignment: its fetches must not be taken
for those of a replica that counts. Without KIP-966 the ISR never becomes empty: its last member stays in it, fenced.
"""

from collections.abc import Iterable, Sequence

from kavka_broker.core.metadata.decide.election_policy import Rules
from kavka_broker.core.metadata.decide.leader_election import Usable, elect
from kavka_broker.core.metadata.image.topics import (
    LEADER_UNCHANGED,
    NO_LEADER,
    RECOVERING,
    RECOVERY_UNCHANGED,
    PartitionState,
)
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord


def settle(
    before: PartitionState,
    wanted: PartitionState,
    rules: Rules,
    usable: Usable,
    *,
    preferred: bool = False,
    lost: Iterable[int] = (),
) -> PartitionState:
    """Settle the partition as it will be. `lost` are brokers that may have lost the end of their logs."""
    state = _keep_last_in_sync(before, _completed(wanted), rules)
    state = _with_eligible(before, state, rules, frozenset(lost))
    leader = elect(state, rules, usable, preferred=preferred)
    state = _led_by(state, leader, before)
    if _has_enough(state, rules):
        # A replica elected from the eligible may be enough by itself: others may now lack committed records.
        state = state._replace(elr=())
    departed = not set(before.replicas) <= set(state.replicas)
    if leader != before.leader or departed:
        state = state._replace(leader_epoch=before.leader_epoch + 1)
    _check(before, state)
    return state


def _check(before: PartitionState, state: PartitionState) -> None:
    """Check what holds for every settled partition, whatever was wanted of it."""
    replicas = set(state.replicas)
    assert replicas, f"nobody holds the partition that {before.replicas} held"
    assert len(replicas) == len(state.replicas), f"a broker holds two replicas: {state.replicas}"
    assert replicas.issuperset(state.isr), f"in sync {state.isr}, replicas {state.replicas}"
    assert replicas.issuperset(state.elr), f"eligible {state.elr}, replicas {state.replicas}"
    assert state.leader == NO_LEADER or state.leader in state.isr, f"{state.leader} leads, in sync are {state.isr}"
    assert not state.elr or set(state.elr).isdisjoint(state.isr), f"{state.elr} are eligible and in sync: {state.isr}"
    assert not state.last_known_elr or state.leader == NO_LEADER, f"{state.leader} leads, and {state} waits for another"
    assert not state.directories or len(state.directories) == len(state.replicas), f"{state.directories} of {replicas}"
    assert replicas.issuperset(state.adding), f"{state.adding} are added to {state.replicas}"
    assert replicas.issuperset(state.removing), f"{state.removing} are removed from {state.replicas}"
    assert state.leader_epoch >= before.leader_epoch, f"{before.leader_epoch} goes back to {state.leader_epoch}"


def difference(
    topic_id: bytes, partition: int, before: PartitionState, after: PartitionState
) -> PartitionChangeRecord | None:
    """Make the record that turns one state into the other, or None where they are equal."""
    if before == after:
        return None
    assert after.partition_epoch == before.partition_epoch, "replay counts the changes of a partition"
    assert after.leader_epoch <= before.leader_epoch + 1, f"{before.leader_epoch} becomes {after.leader_epoch} at once"

    def changed(old: Sequence[int], new: Sequence[int]) -> list[int] | None:
        return None if old == new else list(new)

    return PartitionChangeRecord(
        partition,
        topic_id,
        isr=changed(before.isr, after.isr),
        leader=LEADER_UNCHANGED if before.leader_epoch == after.leader_epoch else after.leader,
        replicas=changed(before.replicas, after.replicas),
        removing_replicas=changed(before.removing, after.removing),
        adding_replicas=changed(before.adding, after.adding),
        leader_recovery_state=(
            RECOVERY_UNCHANGED if before.recovery_state == after.recovery_state else after.recovery_state
        ),
        directories=None if before.directories == after.directories else list(after.directories),
        eligible_leader_replicas=changed(before.elr, after.elr),
        last_known_elr=changed(before.last_known_elr, after.last_known_elr),
    )


def _completed(state: PartitionState) -> PartitionState:
    """Drop the replicas to be removed once every added one is in sync."""
    if not state.adding and not state.removing:
        return state
    isr = _without(state.isr, state.removing)
    if not isr or not set(state.adding) <= set(isr):
        return state
    kept = [index for index, broker_id in enumerate(state.replicas) if broker_id not in state.removing]
    return state._replace(
        replicas=tuple(state.replicas[index] for index in kept),
        directories=tuple(state.directories[index] for index in kept) if state.directories else (),
        isr=isr,
        elr=_without(state.elr, state.removing),
        adding=(),
        removing=(),
    )


def _keep_last_in_sync(before: PartitionState, state: PartitionState, rules: Rules) -> PartitionState:
    if state.isr or rules.tracks_eligible:
        return state
    return state._replace(isr=tuple(replica for replica in before.isr if replica in state.replicas))


def _has_enough(state: PartitionState, rules: Rules) -> bool:
    """Whether as many replicas are in sync as a record needs to be committed."""
    return len(state.isr) >= min(rules.min_insync, len(state.replicas))


def _with_eligible(before: PartitionState, state: PartitionState, rules: Rules, lost: frozenset[int]) -> PartitionState:
    if _has_enough(state, rules):
        return state._replace(elr=())
    if rules.tracks_eligible:
        candidates = {*state.elr, *before.isr} - lost - set(state.isr)
    else:
        # Eligible replicas of the time before the feature was turned off stay eligible as long as the ISR is empty.
        candidates = set() if state.isr else set(state.elr) - lost
    return state._replace(elr=tuple(replica for replica in state.replicas if replica in candidates))


def _led_by(state: PartitionState, leader: int, before: PartitionState) -> PartitionState:
    """See the fourth and the fifth rule."""
    if leader == NO_LEADER:
        remembered = state.last_known_elr
        if not state.isr and before.leader != NO_LEADER:
            remembered = (before.leader,)
        return state._replace(leader=NO_LEADER, last_known_elr=remembered)
    if leader in state.isr:
        return state._replace(leader=leader, last_known_elr=())
    if leader in state.elr and not state.isr:
        return state._replace(leader=leader, isr=(leader,), elr=_without(state.elr, (leader,)), last_known_elr=())
    return state._replace(leader=leader, isr=(leader,), elr=(), last_known_elr=(), recovery_state=RECOVERING)


def _without(values: tuple[int, ...], left_out: Iterable[int]) -> tuple[int, ...]:
    gone = frozenset(left_out)
    return tuple(value for value in values if value not in gone)
