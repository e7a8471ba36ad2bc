"""Move partitions to other brokers (KIP-455).

A reassignment names the brokers that a partition shall have. Those that are new are `adding`, those that shall go
are `removing`, and both are replicas until every new one is in sync; then the change of the ISR that says so also
completes the reassignment (`partition_change`). A new reassignment takes the place of one under way, whose new
replicas go unless it wants them too. To cancel one takes the new replicas away and keeps the others.

Either way a replica must be left that has all records: one in sync, else an eligible leader (KIP-966), else the leader
that was known last. Where only new replicas are that, a new reassignment keeps them until it is complete, and to
cancel is refused as the unclean election that it would be, unless the topic allows those.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import BY_DEFAULT, Policy, Rules, rules_of
from kavka_broker.core.metadata.decide.leader_election import usable_in
from kavka_broker.core.metadata.decide.partition_change import difference, settle
from kavka_broker.core.metadata.decide.topics import check_replicas, directory_for
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message


@dataclass(frozen=True, slots=True)
class Reassign:
    """The brokers that a partition shall have, the preferred leader first. None cancels the reassignment."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


def reassign(
    metadata: Metadata,
    commands: Sequence[Reassign],
    policy: Policy = BY_DEFAULT,
    *,
    allow_replication_factor_change: bool = True,
) -> Decision[list[BrokerError | None]]:
    """Reassign partitions: an error for each, or None where the reassignment has begun. Raises BrokerError."""
    records: list[Message] = []
    results: list[BrokerError | None] = []
    seen: set[tuple[str, int]] = set()
    for command in commands:
        where = (command.topic, command.partition)
        try:
            if where in seen:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f"{where[0]}-{where[1]} is named twice; name it once")
            seen.add(where)
            records += _reassign(metadata, command, policy, keep_factor=not allow_replication_factor_change)
        except BrokerError as refusal:
            results.append(refusal.as_value())
        else:
            results.append(None)
    assert len(results) == len(commands), f"{len(results)} outcomes of {len(commands)} reassignments"
    return Decision(records, results)


def is_moving(state: PartitionState) -> bool:
    """Whether a reassignment is under way."""
    return bool(state.adding or state.removing)


def _reassign(metadata: Metadata, command: Reassign, policy: Policy, *, keep_factor: bool) -> list[Message]:
    topic = metadata.topics.get(command.topic)
    if topic is None or command.partition not in topic.partitions:
        problem = f"there is no partition {command.topic}-{command.partition}"
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem)
    before = topic.partitions[command.partition]
    rules = rules_of(metadata, topic.name, policy)
    if command.replicas is None:
        wanted, rules = _cancelled(before, command, rules)
    else:
        check_replicas(metadata.brokers, command.replicas, command.partition, before.replicas)
        if keep_factor:
            _check_factor(before, command)
        wanted = _begun(metadata, before, command.replicas)
    after = settle(before, wanted, rules, usable_in(metadata.brokers))
    assert command.replicas is None or set(command.replicas) <= set(after.replicas), f"{after} lacks what was asked for"
    record = difference(topic.topic_id, command.partition, before, after)
    return [] if record is None else [record]


def _begun(metadata: Metadata, before: PartitionState, target: tuple[int, ...]) -> PartitionState:
    settled = [replica for replica in before.replicas if replica not in before.adding]
    # Replicas that were being added and are not wanted any more go at once, unless only these have all records.
    kept = {*settled, *target}
    if _loses_all(before, kept):
        kept |= {*before.replicas}
    removing = tuple(replica for replica in before.replicas if replica not in target and replica in kept)
    assert target, "a partition is somewhere"
    assert set(removing).isdisjoint(target), f"{removing} shall go and stay: {target}"
    replicas = target + removing
    return before._replace(
        replicas=replicas,
        isr=tuple(replica for replica in before.isr if replica in kept),
        elr=tuple(replica for replica in before.elr if replica in kept),
        adding=tuple(replica for replica in target if replica not in settled),
        removing=removing,
        directories=tuple(
            before.directory_of(replica) if replica in before.replicas else directory_for(metadata.brokers, replica)
            for replica in replicas
        ),
    )


def _cancelled(before: PartitionState, command: Reassign, rules: Rules) -> tuple[PartitionState, Rules]:
    where = f"{command.topic}-{command.partition}"
    if not is_moving(before):
        raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{where} is not being reassigned")
    replicas = tuple(replica for replica in before.replicas if replica not in before.adding)
    if not replicas:
        problem = f"{where}: every replica is a new one, there is nothing to go back to"
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    loses_all = _loses_all(before, replicas)
    assert set(replicas) <= set(before.replicas), f"to cancel makes replicas: {replicas}"
    if loses_all and not rules.unclean_election:
        problem = (
            f"{where}: only the new replicas {list(_complete(before))} have all records; wait until others are in "
            "sync, or let it end (to go back would lose records; see unclean.leader.election.enable)"
        )
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    wanted = before._replace(
        replicas=replicas,
        isr=tuple(replica for replica in before.isr if replica in replicas),
        elr=tuple(replica for replica in before.elr if replica in replicas),
        adding=(),
        removing=(),
        directories=tuple(before.directory_of(replica) for replica in replicas) if before.directories else (),
    )
    # An unclean election is allowed for this cancelling alone, not for a lack of leaders.
    return wanted, replace(rules, unclean_election=rules.unclean_election and loses_all)


def _complete(state: PartitionState) -> tuple[int, ...]:
    """Replicas of which one must lead next, otherwise records are lost."""
    return state.isr or state.elr or state.last_known_elr


def _loses_all(state: PartitionState, kept: Collection[int]) -> bool:
    """Whether some replicas have all records, and none of these is kept."""
    complete = {*state.isr, *state.elr} or {*state.last_known_elr}
    return bool(complete) and complete.isdisjoint(kept)


def _check_factor(before: PartitionState, command: Reassign) -> None:
    assert command.replicas is not None
    now = len([replica for replica in before.replicas if replica not in before.removing])
    if len(command.replicas) != now:
        problem = (
            f"{command.topic}-{command.partition} has {now} replicas and would have {len(command.replicas)}; "
            "allow a change of the replication factor"
        )
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
