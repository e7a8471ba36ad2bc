"""What a heartbeat brings: unfencing, fencing, controlled shutdown, failed and cordoned directories."""

from dataclasses import replace

import pytest

from kavka_broker.core.metadata.decide.heartbeats import Heartbeat, Standing, heartbeat, leave
from kavka_broker.core.metadata.decide.reassignments import Reassign, reassign
from kavka_broker.core.metadata.decide.registrations import register
from kavka_broker.core.metadata.decide.topics import CreateTopic
from kavka_broker.core.metadata.image.brokers import FENCE, UNFENCE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from tests.support.brokers import changes, epoch_of, replicated, state, told
from tests.support.cluster import create, enact, introduction, made, uuid

CAUGHT_UP = 10_000


def fenced(broker_id: int = 1) -> Metadata:
    metadata = Metadata()
    enact(metadata, register(metadata, introduction(broker_id)))
    return metadata


def test_a_broker_that_holds_its_registration_is_unfenced() -> None:
    metadata = fenced()
    epoch = epoch_of(metadata, 1)
    behind = heartbeat(metadata, Heartbeat(1, epoch, epoch - 1))
    assert (behind.records, behind.response) == ([], Standing(is_caught_up=False, is_fenced=True))
    there = heartbeat(metadata, Heartbeat(1, epoch, epoch))
    assert there.records == [BrokerRegistrationChangeRecord(1, epoch, fenced=UNFENCE)]
    assert there.response == Standing(is_caught_up=True, is_fenced=False)


def test_a_broker_stays_fenced_for_as_long_as_it_wants_to_be() -> None:
    metadata = fenced()
    assert told(metadata, 1, wants_fence=True) == Standing(is_caught_up=True, is_fenced=True)
    assert told(metadata, 1) == Standing(is_caught_up=True, is_fenced=False)
    assert told(metadata, 1, wants_fence=True).is_fenced


@pytest.mark.parametrize("named", [(1, 7), (9, 0)])
def test_a_stale_incarnation_is_told_so(named: tuple[int, int]) -> None:
    with pytest.raises(BrokerError) as refusal:
        heartbeat(fenced(), Heartbeat(*named, CAUGHT_UP))
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_heartbeat_of_one_that_lives_writes_nothing() -> None:
    metadata = replicated(1, 2, 3)
    assert heartbeat(metadata, Heartbeat(1, epoch_of(metadata, 1), CAUGHT_UP)).records == []


def test_an_unfenced_broker_may_lead_partitions_without_a_leader() -> None:
    metadata = replicated(1, 2)
    for broker_id in (1, 2):
        enact(metadata, leave(metadata, broker_id))
    assert (state(metadata).leader, state(metadata).elr) == (NO_LEADER, (1, 2))
    decision = heartbeat(metadata, Heartbeat(1, epoch_of(metadata, 1), CAUGHT_UP))
    change, (election,) = decision.records[0], changes(decision.records)
    assert isinstance(change, BrokerRegistrationChangeRecord)
    assert (election.leader, election.isr, election.eligible_leader_replicas) == (1, [1], [2])


def test_a_broker_that_stops_hands_over_and_waits_until_that_is_seen() -> None:
    metadata = replicated(1, 2, 3)
    first = told(metadata, 1, wants_shutdown=True, handover_seen=False)
    assert first == Standing(is_caught_up=True, is_fenced=False, should_shut_down=False)
    after = state(metadata)
    assert (after.leader, after.isr) == (2, (2, 3))
    registration = metadata.brokers.get(1)
    assert registration is not None
    assert registration.in_controlled_shutdown
    # While it waits nothing more is written, and nothing new is placed on it.
    offset = metadata.offset
    assert not told(metadata, 1, wants_shutdown=True, handover_seen=False).should_shut_down
    assert metadata.offset == offset
    made(metadata, CreateTopic("u", uuid(2), 6, 2))
    topic = metadata.topics.get("u")
    assert topic is not None
    assert all(1 not in partition.replicas for partition in topic.partitions.values())
    last = told(metadata, 1, wants_shutdown=True, handover_seen=True)
    assert last == Standing(is_caught_up=True, is_fenced=True, should_shut_down=True)


def test_the_records_of_a_controlled_shutdown() -> None:
    metadata = replicated(1, 2, 3)
    epoch = epoch_of(metadata, 1)
    command = Heartbeat(1, epoch, CAUGHT_UP, wants_shutdown=True)
    announced, moved = heartbeat(metadata, command, handover_seen=False).records
    assert announced == BrokerRegistrationChangeRecord(1, epoch, in_controlled_shutdown=1)
    (change,) = changes([moved])
    assert (change.leader, change.isr, change.eligible_leader_replicas) == (2, [2, 3], None)


def test_a_broker_without_anything_to_hand_over_may_stop_at_once() -> None:
    metadata = replicated(1, 2, others=(3,))
    decision = heartbeat(metadata, Heartbeat(3, epoch_of(metadata, 3), CAUGHT_UP, wants_shutdown=True))
    assert decision.response == Standing(is_caught_up=True, is_fenced=True, should_shut_down=True)
    assert decision.records == [BrokerRegistrationChangeRecord(3, epoch_of(metadata, 3), fenced=FENCE)]


def test_a_broker_that_leads_nothing_and_is_in_sync_still_waits() -> None:
    metadata = replicated(1, 2, 3)
    assert state(metadata).leader == 1
    assert not told(metadata, 2, wants_shutdown=True, handover_seen=False).should_shut_down
    assert state(metadata).isr == (1, 3)


def test_the_only_broker_may_stop_at_once_and_stays_eligible() -> None:
    metadata = replicated(1, min_insync=1)
    assert told(metadata, 1, wants_shutdown=True).should_shut_down
    assert (state(metadata).isr, state(metadata).elr, state(metadata).leader) == ((), (1,), NO_LEADER)


def test_one_that_is_fenced_may_stop() -> None:
    metadata = fenced()
    assert told(metadata, 1, wants_shutdown=True).should_shut_down
    assert told(metadata, 1, wants_shutdown=True, wants_fence=True).should_shut_down


def two_directories() -> Metadata:
    """Broker 1 leads t-0 in one directory and t-1 in another."""
    metadata = replicated(2, 3)
    directories = (uuid(61), uuid(62))
    enact(metadata, register(metadata, replace(introduction(1), directories=directories)))
    told(metadata, 1)
    made(metadata, CreateTopic("u", uuid(2), -1, -1, {0: (1, 2, 3), 1: (1, 2, 3)}))
    for partition, directory in enumerate(directories):
        one = state(metadata, "u", partition)
        moved = one._replace(directories=(directory, *one.directories[1:]))
        metadata.replay(moved.record(uuid(2), partition))
    return metadata


def offline(metadata: Metadata, *directories: bytes) -> Heartbeat:
    return Heartbeat(1, epoch_of(metadata, 1), CAUGHT_UP, offline_directories=directories)


def test_a_failed_directory_takes_only_its_replicas() -> None:
    metadata = two_directories()
    enact(metadata, heartbeat(metadata, offline(metadata, uuid(61))))
    assert (state(metadata, "u", 0).leader, state(metadata, "u", 0).isr) == (2, (2, 3))
    assert (state(metadata, "u", 1).leader, state(metadata, "u", 1).isr) == (1, (1, 2, 3))
    registration = metadata.brokers.get(1)
    assert registration is not None
    assert registration.directories == (uuid(62),)
    assert heartbeat(metadata, offline(metadata, uuid(61))).records == []


def test_a_replica_in_a_failed_directory_is_not_elected() -> None:
    metadata = two_directories()
    enact(metadata, heartbeat(metadata, offline(metadata, uuid(61))))
    for broker_id in (2, 3):
        enact(metadata, leave(metadata, broker_id))
    assert state(metadata, "u", 0).leader == NO_LEADER
    assert state(metadata, "u", 1).leader == 1


def test_a_broker_without_any_directory_is_fenced() -> None:
    metadata = two_directories()
    standing = enact(metadata, heartbeat(metadata, offline(metadata, uuid(61), uuid(62))))
    assert standing.is_fenced
    assert state(metadata, "u", 1).leader == 2
    assert enact(metadata, heartbeat(metadata, offline(metadata, uuid(61), uuid(62)))).is_fenced


def test_cordoned_directories_take_nothing_new() -> None:
    metadata = two_directories()
    command = Heartbeat(1, epoch_of(metadata, 1), CAUGHT_UP, cordoned_directories=(uuid(61), uuid(62)))
    enact(metadata, heartbeat(metadata, command))
    assert heartbeat(metadata, command).records == []
    assert state(metadata, "u", 0).leader == 1
    refusal = create(metadata, CreateTopic("v", uuid(3), 1, 3))
    assert isinstance(refusal, BrokerError)
    assert (
        refusal.message == "3 replicas need as many brokers; there are 2, and 1 whose log directories are all cordoned"
    )
    made(metadata, CreateTopic("v", uuid(3), 1, 2))
    named = create(metadata, CreateTopic("w", uuid(4), assignments={0: (2, 1)}))
    assert isinstance(named, BrokerError)
    assert named.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert str(named.message).endswith("names broker 1, whose log directories are all cordoned; see cordoned.log.dirs")


def test_a_reassignment_names_cordoned_brokers_only_where_they_have_the_replica() -> None:
    metadata = two_directories()
    command = Heartbeat(1, epoch_of(metadata, 1), CAUGHT_UP, cordoned_directories=(uuid(61), uuid(62)))
    enact(metadata, heartbeat(metadata, command))
    assert 1 in state(metadata, "u", 0).replicas
    made(metadata, CreateTopic("v", uuid(3), 1, 2))
    assert reassign(metadata, [Reassign("u", 0, (1, 2))]).response == [None]
    (error,) = reassign(metadata, [Reassign("v", 0, (1, 2))]).response
    assert error is not None
    assert error.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
