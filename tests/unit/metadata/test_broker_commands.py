"""Brokers come and go: registrations, epochs, and who leads afterwards."""

import pytest

from kavka_broker.core.metadata.decide.heartbeats import leave
from kavka_broker.core.metadata.decide.topics import CreateTopic
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.unfence_broker_record import UnfenceBrokerRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from tests.support.cluster import cluster, enact, join, made, uuid


def state(metadata: Metadata, topic: str = "t", partition: int = 0) -> PartitionState:
    found = metadata.topics.get(topic)
    assert found is not None
    return found.partitions[partition]


def replicated(*broker_ids: int) -> Metadata:
    """A topic of one partition on these brokers, in this order."""
    metadata = cluster(*broker_ids)
    made(metadata, CreateTopic("t", uuid(1), -1, -1, {0: broker_ids}))
    return metadata


def test_the_epoch_of_a_broker_is_the_offset_of_its_registration() -> None:
    metadata = Metadata()
    assert join(metadata, 1) == 0
    registration = metadata.brokers.get(1)
    assert registration is not None
    assert (registration.epoch, registration.fenced) == (0, False)
    assert join(metadata, 2) == metadata.offset - 1


def test_a_new_incarnation_replaces_the_old_and_leads_in_a_new_epoch() -> None:
    metadata = replicated(1)
    before = state(metadata)
    epoch = join(metadata, 1, incarnation=1)
    after = state(metadata)
    registration = metadata.brokers.get(1)
    assert registration is not None
    assert registration.epoch == epoch
    # One epoch without a leader, while it is fenced, and one with it.
    assert (after.leader, after.leader_epoch, after.isr) == (1, before.leader_epoch + 2, (1,))


def test_another_brokers_leadership_is_left_alone() -> None:
    metadata = replicated(1, 2)
    before = state(metadata)
    join(metadata, 2, incarnation=1)
    assert state(metadata) == before._replace(isr=(1,), partition_epoch=before.partition_epoch + 1)


def test_a_broker_that_leaves_hands_its_partitions_over() -> None:
    metadata = replicated(1, 2)
    enact(metadata, leave(metadata, 1))
    assert (state(metadata).leader, state(metadata).isr) == (2, (2,))
    assert [one.broker_id for one in metadata.brokers.alive()] == [2]


def test_the_last_in_sync_replica_stays_in_sync_and_leads_again_when_it_is_back() -> None:
    metadata = replicated(1)
    enact(metadata, leave(metadata, 1))
    assert (state(metadata).leader, state(metadata).isr) == (NO_LEADER, (1,))
    join(metadata, 1, incarnation=1)
    assert (state(metadata).leader, state(metadata).isr) == (1, (1,))


def test_leaving_twice_writes_nothing() -> None:
    metadata = cluster(1)
    enact(metadata, leave(metadata, 1))
    assert not leave(metadata, 1).records
    assert not leave(metadata, 9).records


def test_a_partition_that_apache_kafka_left_without_a_leader_is_led_by_an_eligible_replica() -> None:
    # Apache Kafka 4.3 stops its only broker with an empty ISR, the replica being eligible and last known.
    metadata = replicated(1)
    left = state(metadata)._replace(isr=(), elr=(1,), last_known_elr=(1,), leader=NO_LEADER)
    metadata.replay(left.record(uuid(1), 0))
    join(metadata, 1, incarnation=1)
    after = state(metadata)
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (1, (1,), (), ())


def test_fencing_by_the_older_records_counts_too() -> None:
    metadata = cluster(1)
    registration = metadata.brokers.get(1)
    assert registration is not None
    metadata.replay(FenceBrokerRecord(1, registration.epoch))
    assert not metadata.brokers.alive()
    metadata.replay(UnfenceBrokerRecord(1, registration.epoch))
    assert metadata.brokers.is_usable(1)
    metadata.replay(BrokerRegistrationChangeRecord(1, registration.epoch, in_controlled_shutdown=1))
    assert not metadata.brokers.is_usable(1)
    metadata.replay(UnregisterBrokerRecord(1, registration.epoch))
    assert len(metadata.brokers) == 0


def test_a_change_of_an_older_incarnation_is_a_mistake_of_ours() -> None:
    metadata = cluster(1)
    with pytest.raises(AssertionError, match="broker 1 is at epoch 0, not 7"):
        metadata.replay(BrokerRegistrationChangeRecord(1, 7, fenced=1))
