"""Leaders by request, by balance and by rescue.

    elect_leaders   a request asks (KIP-460): the preferred replica, or any that lives whatever it lacks
    balance         as `auto.leader.rebalance.enable`: preferred replicas that are in sync lead again
    rescue          as `unclean.leader.election.enable`: a partition without a leader is led by any replica that lives

Each decision moves at most `ELECTIONS_MAX` leaders on its own account, so that a large cluster is not turned over
at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import BY_DEFAULT, Policy, rules_of
from kavka_broker.core.metadata.decide.leader_election import usable_in
from kavka_broker.core.metadata.decide.partition_change import difference, settle
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState, Topic
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord

ELECTIONS_MAX: Final = 1000


class Election(IntEnum):
    """Types of election, with the numbers of the protocol."""

    PREFERRED = 0
    UNCLEAN = 1


Where = tuple[str, int]
Result = tuple[Where, BrokerError | None]


def elect_leaders(
    metadata: Metadata, election: Election, wanted: Sequence[Where] | None, policy: Policy = BY_DEFAULT
) -> Decision[list[Result]]:
    """Elect leaders: an outcome for each partition; for all of them (None), only where there was something to do."""
    asked = [*dict.fromkeys(_everywhere(metadata) if wanted is None else wanted)]
    records: list[Message] = []
    results: list[Result] = []
    for where in asked:
        try:
            records.append(_elect(metadata, election, where, policy))
        except BrokerError as refusal:
            if wanted is not None or refusal.code is not ErrorCode.ELECTION_NOT_NEEDED:
                results.append((where, refusal.as_value()))
        else:
            results.append((where, None))
    assert wanted is None or len(results) == len(asked), f"{len(results)} outcomes of {len(asked)} elections"
    return Decision(records, results)


def balance(metadata: Metadata, policy: Policy = BY_DEFAULT) -> Decision[int]:
    """Give leadership back to preferred replicas; returns how many leaders moved."""
    return _moved(metadata, Election.PREFERRED, policy)


def rescue(metadata: Metadata, policy: Policy = BY_DEFAULT) -> Decision[int]:
    """Elect leaders where there are none and the topic would rather lose records than wait; returns how many."""
    return _moved(metadata, Election.UNCLEAN, policy)


def _moved(metadata: Metadata, election: Election, policy: Policy) -> Decision[int]:
    records: list[Message] = []
    for topic in metadata.topics:
        if election is Election.UNCLEAN and not rules_of(metadata, topic.name, policy).unclean_election:
            continue
        for partition, state in topic.partitions.items():
            if _is_needless(state, election):
                continue
            change = _change(metadata, election, topic, partition, policy)
            if change is not None:
                records.append(change)
            assert len(records) <= ELECTIONS_MAX, len(records)
            if len(records) == ELECTIONS_MAX:
                return Decision(records, ELECTIONS_MAX)
    return Decision(records, len(records))


def _everywhere(metadata: Metadata) -> Iterator[Where]:
    return ((topic.name, partition) for topic in metadata.topics for partition in topic.partitions)


def _elect(metadata: Metadata, election: Election, where: Where, policy: Policy) -> PartitionChangeRecord:
    name, partition = where
    topic = metadata.topics.get(name)
    if topic is None or partition not in topic.partitions:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{partition}")
    state = topic.partitions[partition]
    if _is_needless(state, election):
        raise BrokerError(ErrorCode.ELECTION_NOT_NEEDED, f"broker {state.leader} leads {name}-{partition} already")
    change = _change(metadata, election, topic, partition, policy)
    if change is not None:
        return change
    if election is Election.PREFERRED:
        problem = f"{name}-{partition}: broker {state.replicas[0]} is preferred, and not in sync or not there"
        raise BrokerError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, problem)
    problem = f"{name}-{partition}: none of its brokers {list(state.replicas)} is there"
    raise BrokerError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, problem)


def _is_needless(state: PartitionState, election: Election) -> bool:
    assert state.replicas, "a partition is somewhere"
    return state.leader == state.replicas[0] if election is Election.PREFERRED else state.leader != NO_LEADER


def _change(
    metadata: Metadata, election: Election, topic: Topic, partition: int, policy: Policy
) -> PartitionChangeRecord | None:
    """Make the record of another leader, or None where no replica can lead."""
    state = topic.partitions[partition]
    rules = replace(rules_of(metadata, topic.name, policy), unclean_election=election is Election.UNCLEAN)
    preferred = election is Election.PREFERRED
    after = settle(state, state, rules, usable_in(metadata.brokers), preferred=preferred)
    assert set(after.replicas) <= set(state.replicas), f"an election makes replicas: {after}"
    return None if after.leader == state.leader else difference(topic.topic_id, partition, state, after)
