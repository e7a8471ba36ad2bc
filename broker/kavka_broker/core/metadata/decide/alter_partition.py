"""A leader asks for another ISR (KIP-497, KIP-841, KIP-903).

The leader names the state it saw, by leader epoch and partition epoch; only a change of the newest state is made. What
each refusal tells the leader to do:

    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION   it was deleted: forget the change
    NOT_CONTROLLER            the leader knows a newer state than this controller: ask the newer controller
    FENCED_LEADER_EPOCH       another broker leads, or it leads in a newer epoch: wait for the metadata
    INVALID_REQUEST           not the leader, or an ISR that cannot be: a mistake in the leader
    INVALID_UPDATE_VERSION    the partition has changed meanwhile: wait for the metadata, then ask again
    INELIGIBLE_REPLICA        a member is fenced, stops, is another incarnation, or lost its directory
    NEW_LEADER_ELECTED        done, and with it (a reassignment ended) another leads

The broker epochs of the members are what keeps a replica out that was caught up, crashed, lost the end of its log
and came back between the leader's look and this decision.
"""

from collections.abc import Sequence

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import BY_DEFAULT, Policy, rules_of
from kavka_broker.core.metadata.decide.leader_election import usable_in
from kavka_broker.core.metadata.decide.partition_change import difference, settle
from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import RECOVERED, RECOVERING, PartitionState, changed
from kavka_broker.core.partition.isr_proposal import UNKNOWN_BROKER_EPOCH, IsrChange
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message

Outcome = PartitionState | ErrorCode


def alter_partitions(
    metadata: Metadata, broker_id: int, broker_epoch: int, changes: Sequence[IsrChange], policy: Policy = BY_DEFAULT
) -> Decision[list[Outcome]]:
    """Change partitions: the state of each afterwards, or an error. Raises BrokerError for a stale broker."""
    metadata.brokers.at_epoch(broker_id, broker_epoch)
    records: list[Message] = []
    outcomes: list[Outcome] = []
    seen: set[tuple[bytes, int]] = set()
    for change in changes:
        where = (change.topic_id, change.partition)
        if where in seen:
            outcomes.append(ErrorCode.INVALID_REQUEST)  # the partition is named twice: the first change counts
            continue
        seen.add(where)
        outcomes.append(_alter(metadata, broker_id, change, policy, records))
    assert len(outcomes) == len(changes), f"{len(outcomes)} answers to {len(changes)} changes"
    assert len(records) <= len(changes), f"{len(records)} records of {len(changes)} changes"
    return Decision(records, outcomes)


def _alter(metadata: Metadata, broker_id: int, change: IsrChange, policy: Policy, records: list[Message]) -> Outcome:
    topic = metadata.topics.by_id(change.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    before = topic.partitions.get(change.partition)
    if before is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refusal = _refusal(before, broker_id, change) or _ineligible(metadata.brokers, before, change)
    if refusal is not None:
        return refusal
    isr = tuple(member.broker_id for member in change.isr)
    wanted = before._replace(isr=isr, recovery_state=change.recovery_state)
    after = settle(before, wanted, rules_of(metadata, topic.name, policy), usable_in(metadata.brokers))
    assert change.leader_epoch == before.leader_epoch, f"a change of epoch {change.leader_epoch} of {before}"
    assert change.partition_epoch == before.partition_epoch, f"a change of {change.partition_epoch} of {before}"
    record = difference(change.topic_id, change.partition, before, after)
    if record is None:
        return before
    records.append(record)
    if after.leader_epoch != before.leader_epoch:
        return ErrorCode.NEW_LEADER_ELECTED
    return changed(before, record)


def _refusal(state: PartitionState, broker_id: int, change: IsrChange) -> ErrorCode | None:
    if change.leader_epoch > state.leader_epoch or change.partition_epoch > state.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ErrorCode.INVALID_REQUEST
    if change.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return None if _is_possible(state, change) else ErrorCode.INVALID_REQUEST


def _is_possible(state: PartitionState, change: IsrChange) -> bool:
    members = [member.broker_id for member in change.isr]
    if len(set(members)) < len(members) or not {state.leader} <= set(members) <= set(state.replicas):
        return False
    if change.recovery_state not in (RECOVERED, RECOVERING):
        return False
    # A leader that recovers is alone in its ISR, and one that has recovered does not fall back.
    return change.recovery_state == RECOVERED or (len(members) == 1 and state.recovery_state == RECOVERING)


def _ineligible(brokers: Brokers, state: PartitionState, change: IsrChange) -> ErrorCode | None:
    for member in change.isr:
        registration = brokers.get(member.broker_id)
        if registration is None or not registration.usable:
            return ErrorCode.INELIGIBLE_REPLICA
        if not registration.has_online(state.directory_of(member.broker_id)):
            return ErrorCode.INELIGIBLE_REPLICA
        if member.broker_epoch not in (UNKNOWN_BROKER_EPOCH, registration.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return None
