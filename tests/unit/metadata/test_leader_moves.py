"""Leaders by request, by balance and by rescue."""

from typing import Any

import pytest

from kavka_broker.core.metadata.decide.election_policy import UNCLEAN_ELECTION, Policy
from kavka_broker.core.metadata.decide.heartbeats import leave
from kavka_broker.core.metadata.decide.leader_moves import ELECTIONS_MAX, Election, balance, elect_leaders, rescue
from kavka_broker.core.metadata.decide.topics import CreateTopic
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from tests.support.brokers import TOPIC_ID, propose, replicated, state, told
from tests.support.cluster import enact, made, uuid


def codes(metadata: Metadata, election: Election, *wanted: tuple[str, int]) -> list[ErrorCode]:
    results = enact(metadata, elect_leaders(metadata, election, wanted))
    assert [where for where, _ in results] == [*wanted]
    return [ErrorCode.NONE if refusal is None else refusal.code for _, refusal in results]


def away_and_back() -> Metadata:
    """Broker 1 is preferred and in sync, and 2 leads."""
    metadata = replicated(1, 2, 3)
    enact(metadata, leave(metadata, 1))
    told(metadata, 1)
    propose(metadata, 2, 3, 1)
    return metadata


def leaderless(**configs: Any) -> Metadata:
    """Broker 2 was out of sync when 1 went, and lives."""
    metadata = replicated(1, 2, min_insync=1, **configs)
    propose(metadata, 1)
    enact(metadata, leave(metadata, 1))
    return metadata


def test_the_preferred_replica_leads_again() -> None:
    metadata = away_and_back()
    decision = elect_leaders(metadata, Election.PREFERRED, [("t", 0)])
    assert decision.records == [PartitionChangeRecord(0, TOPIC_ID, leader=1)]
    assert decision.response == [(("t", 0), None)]


def test_why_a_preferred_replica_does_not_lead() -> None:
    metadata = away_and_back()
    assert codes(metadata, Election.PREFERRED, ("t", 7), ("u", 0)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    propose(metadata, 2, 3)
    assert codes(metadata, Election.PREFERRED, ("t", 0)) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    propose(metadata, 2, 3, 1)
    assert codes(metadata, Election.PREFERRED, ("t", 0)) == [ErrorCode.NONE]
    assert codes(metadata, Election.PREFERRED, ("t", 0)) == [ErrorCode.ELECTION_NOT_NEEDED]


def test_of_all_partitions_only_those_with_something_to_do_are_answered() -> None:
    metadata = away_and_back()
    made(metadata, CreateTopic("u", uuid(2), 3, 1))
    assert enact(metadata, elect_leaders(metadata, Election.PREFERRED, None)) == [(("t", 0), None)]
    assert elect_leaders(metadata, Election.PREFERRED, None).response == []


def test_an_unclean_election_by_request() -> None:
    metadata = leaderless()
    assert (state(metadata).isr, state(metadata).elr, state(metadata).leader) == ((), (1,), NO_LEADER)
    assert codes(metadata, Election.PREFERRED, ("t", 0)) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    assert codes(metadata, Election.UNCLEAN, ("t", 0)) == [ErrorCode.NONE]
    after = state(metadata)
    assert (after.leader, after.isr, after.elr, after.recovery_state) == (2, (2,), (), 1)
    assert codes(metadata, Election.UNCLEAN, ("t", 0)) == [ErrorCode.ELECTION_NOT_NEEDED]


def test_no_replica_lives_to_be_elected() -> None:
    metadata = leaderless()
    enact(metadata, leave(metadata, 2))
    assert codes(metadata, Election.UNCLEAN, ("t", 0)) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_a_partition_named_twice_is_elected_once() -> None:
    decision = elect_leaders(away_and_back(), Election.PREFERRED, [("t", 0), ("t", 0)])
    assert (len(decision.records), len(decision.response)) == (1, 1)


def test_balance_moves_leadership_to_preferred_replicas_in_sync() -> None:
    metadata = away_and_back()
    assert enact(metadata, balance(metadata)) == 1
    assert state(metadata).leader == 1
    assert balance(metadata).records == []
    enact(metadata, leave(metadata, 1))
    assert balance(metadata).records == []


def test_balance_moves_so_many_at_once() -> None:
    metadata = replicated(1, 2)
    made(metadata, CreateTopic("u", uuid(2), ELECTIONS_MAX + 5, 2))
    made(metadata, CreateTopic("v", uuid(3), ELECTIONS_MAX + 5, 2))
    enact(metadata, leave(metadata, 1))
    told(metadata, 1)
    for topic in list(metadata.topics):
        for partition in topic.partitions:
            metadata.replay(PartitionChangeRecord(partition, topic.topic_id, isr=[1, 2]))
    first = enact(metadata, balance(metadata))
    second = enact(metadata, balance(metadata))
    assert (first, second) == (ELECTIONS_MAX, 6)


@pytest.mark.parametrize(
    ("topic", "cluster", "file", "rescued"),
    [
        (None, None, False, 0),
        (None, None, True, 1),
        (None, "true", False, 1),
        (None, "false", True, 0),
        ("true", "false", False, 1),
        ("false", "true", True, 0),
    ],
)
def test_rescue_asks_the_topic_then_the_cluster_then_the_file(
    topic: str | None, cluster: str | None, file: bool, rescued: int
) -> None:
    metadata = leaderless()
    for kind, name, value in ((ResourceType.TOPIC, "t", topic), (ResourceType.BROKER, "", cluster)):
        if value is not None:
            metadata.replay(ConfigRecord(kind, name, UNCLEAN_ELECTION, value))
    assert enact(metadata, rescue(metadata, Policy(unclean_election=file))) == rescued
    assert state(metadata).leader == (2 if rescued else NO_LEADER)


def test_where_it_is_allowed_a_fencing_elects_at_once() -> None:
    metadata = leaderless(unclean_leader_election_enable="true")
    assert (state(metadata).leader, state(metadata).isr, state(metadata).recovery_state) == (2, (2,), 1)
