"""Partitions on their way to other brokers: begin, complete, replace, cancel."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka_broker.core.metadata.decide.heartbeats import leave
from kavka_broker.core.metadata.decide.reassignments import Reassign, is_moving, reassign
from kavka_broker.core.metadata.decide.registrations import register
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.features import ELR_FEATURE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from tests.support.brokers import TOPIC_ID, propose, replicated, state, told
from tests.support.cluster import directory_of, enact, introduction


def moved(metadata: Metadata, *replicas: int, keep_factor: bool = False) -> ErrorCode:
    command = Reassign("t", 0, replicas)
    (result,) = enact(metadata, reassign(metadata, [command], allow_replication_factor_change=not keep_factor))
    return ErrorCode.NONE if result is None else result.code


def cancelled(metadata: Metadata) -> ErrorCode:
    (result,) = enact(metadata, reassign(metadata, [Reassign("t", 0, None)]))
    return ErrorCode.NONE if result is None else result.code


def test_new_replicas_are_added_before_old_ones_go() -> None:
    metadata = replicated(1, 2, others=(3, 4))
    (record,) = reassign(metadata, [Reassign("t", 0, (3, 4))]).records
    assert record == PartitionChangeRecord(
        0,
        TOPIC_ID,
        replicas=[3, 4, 1, 2],
        adding_replicas=[3, 4],
        removing_replicas=[1, 2],
        directories=[directory_of(one) for one in (3, 4, 1, 2)],
    )


def test_what_needs_no_copy_is_done_at_once() -> None:
    metadata = replicated(1, 2, 3)
    assert moved(metadata, 2, 1) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.isr, after.leader, is_moving(after)) == ((2, 1), (1, 2), 1, False)
    assert len(after.directories) == 2


def test_another_order_only_prefers_another_leader() -> None:
    metadata = replicated(1, 2, 3)
    before = state(metadata)
    assert moved(metadata, 3, 2, 1) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.leader, after.leader_epoch) == ((3, 2, 1), 1, before.leader_epoch)
    assert after.directories == (directory_of(3), directory_of(2), directory_of(1))


def test_what_is_so_already_writes_nothing() -> None:
    metadata = replicated(1, 2)
    assert reassign(metadata, [Reassign("t", 0, (1, 2))]).records == []


def test_it_is_complete_when_every_new_replica_is_in_sync() -> None:
    metadata = replicated(1, 2, others=(3, 4))
    moved(metadata, 2, 3, 4)
    propose(metadata, 1, 2, 3)
    assert state(metadata).adding == (3, 4)
    propose(metadata, 1, 2, 3, 4)
    after = state(metadata)
    assert (after.replicas, after.isr, after.leader, is_moving(after)) == ((2, 3, 4), (2, 3, 4), 2, False)


def test_another_reassignment_takes_the_place_of_one_under_way() -> None:
    metadata = replicated(1, 2, others=(3, 4))
    moved(metadata, 3, 2)
    assert moved(metadata, 4, 2) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.adding, after.removing) == ((4, 2, 1), (4,), (1,))
    # One that is still being added stays so where the new one wants it too.
    assert moved(metadata, 4, 1) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.adding, after.removing) == ((4, 1, 2), (4,), (2,))


def test_a_cancelled_reassignment_goes_back_to_the_former_replicas() -> None:
    metadata = replicated(1, 2, others=(3, 4))
    before = state(metadata)
    moved(metadata, 3, 4)
    propose(metadata, 1, 2, 3)
    assert cancelled(metadata) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.isr, after.directories) == (before.replicas, before.isr, before.directories)
    assert not is_moving(after)
    assert after.leader_epoch == before.leader_epoch + 1
    assert cancelled(metadata) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_replica_not_wanted_any_more_stays_while_no_other_is_in_sync() -> None:
    metadata = only_new_in_sync()
    assert moved(metadata, 1, 4) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.isr, after.adding, after.removing) == ((1, 4, 3, 2), (3,), (4,), (3, 2))


def only_new_in_sync(**configs: Any) -> Metadata:
    metadata = replicated(1, 2, others=(3, 4), min_insync=1, **configs)
    moved(metadata, 3, 4)
    propose(metadata, 1, 2, 3)
    for broker_id in (2, 1):
        enact(metadata, leave(metadata, broker_id))
    assert state(metadata).isr == (3,)
    return metadata


def test_to_cancel_never_loses_records_by_itself() -> None:
    assert cancelled(only_new_in_sync()) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def only_new_eligible(**configs: Any) -> Metadata:
    """The new replica took records alone and is away now; the others are back, and lack them."""
    metadata = only_new_in_sync(**configs)
    enact(metadata, leave(metadata, 3))
    for broker_id in (1, 2):
        told(metadata, broker_id)
    assert (state(metadata).isr, state(metadata).elr) == ((), (3,))
    return metadata


def only_new_known(**configs: Any) -> Metadata:
    """The new replica was the last to lead and stopped uncleanly: none is eligible, and none has more records."""
    metadata = only_new_in_sync(**configs)
    enact(metadata, register(metadata, introduction(3, incarnation=1)))
    for broker_id in (1, 2):
        told(metadata, broker_id)
    assert (state(metadata).isr, state(metadata).elr, state(metadata).last_known_elr) == ((), (), (3,))
    return metadata


AT_LAST = pytest.mark.parametrize("at_last", [only_new_eligible, only_new_known])


@AT_LAST
def test_to_cancel_keeps_eligible_replicas(at_last: Callable[..., Metadata]) -> None:
    metadata = at_last()
    before = state(metadata)
    assert cancelled(metadata) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert state(metadata) == before
    told(metadata, 3)
    assert state(metadata).leader == 3


@AT_LAST
def test_to_replace_keeps_eligible_replicas_until_others_have_their_records(at_last: Callable[..., Metadata]) -> None:
    metadata = at_last()
    assert moved(metadata, 1, 2) is ErrorCode.NONE
    assert set(state(metadata).replicas) == {1, 2, 3, 4}
    told(metadata, 3)
    assert state(metadata).leader == 3
    propose(metadata, 3, 1)
    after = state(metadata)
    assert (after.replicas, after.isr, is_moving(after)) == ((1, 2), (1,), False)


def test_to_cancel_without_eligible_replicas_elects_only_replicas_that_stay() -> None:
    # As before KIP-966, where the last in sync stays in the ISR: it must not do so once it is no replica.
    metadata = only_new_in_sync(unclean_leader_election_enable="true")
    metadata.replay(FeatureLevelRecord(ELR_FEATURE, 0))
    assert cancelled(metadata) is ErrorCode.NONE
    after = state(metadata)
    assert set(after.isr) <= set(after.replicas)
    assert after.leader in (*after.replicas, NO_LEADER)


def test_to_cancel_elects_nobody_unclean_where_no_record_is_lost() -> None:
    # Broker 2 was last in sync, and is away; its records are not given up for what broker 1 has, which is there.
    metadata = replicated(1, 2, others=(3,), min_insync=1)
    for broker_id in (3, 1, 2):
        enact(metadata, leave(metadata, broker_id))
    assert moved(metadata, 1, 2, 3) is ErrorCode.NONE
    told(metadata, 1)
    assert (state(metadata).leader, state(metadata).isr, state(metadata).elr) == (NO_LEADER, (), (2,))
    metadata.replay(ConfigRecord(ResourceType.TOPIC, "t", "unclean.leader.election.enable", "true"))
    assert cancelled(metadata) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.leader, after.isr, after.elr) == ((1, 2), NO_LEADER, (), (2,))


def test_to_cancel_loses_records_where_the_topic_allows_it() -> None:
    metadata = only_new_in_sync(unclean_leader_election_enable="true")
    told(metadata, 1)
    assert cancelled(metadata) is ErrorCode.NONE
    after = state(metadata)
    assert (after.replicas, after.isr, after.leader, after.recovery_state) == ((1, 2), (1,), 1, 1)


@pytest.mark.parametrize("replicas", [(), (1, 1), (1, 9)])
def test_replicas_that_cannot_be_are_refused(replicas: tuple[int, ...]) -> None:
    metadata = replicated(1, 2)
    assert moved(metadata, *replicas) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_the_replication_factor_may_be_held_to() -> None:
    metadata = replicated(1, 2, others=(3, 4))
    assert moved(metadata, 1, 2, 3, keep_factor=True) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert moved(metadata, 1, 3, keep_factor=True) is ErrorCode.NONE
    assert moved(metadata, 3, 4, keep_factor=True) is ErrorCode.NONE


def test_a_partition_that_is_not_there_or_named_twice() -> None:
    metadata = replicated(1, 2)
    commands = [Reassign("u", 0, (1,)), Reassign("t", 5, (1,)), Reassign("t", 0, (2, 1)), Reassign("t", 0, (1,))]
    results = reassign(metadata, commands).response
    assert [result.code if isinstance(result, BrokerError) else None for result in results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        None,
        ErrorCode.INVALID_REQUEST,
    ]


def test_a_new_replica_whose_broker_is_fenced_is_waited_for() -> None:
    metadata = replicated(1, 2, others=(3,))
    enact(metadata, leave(metadata, 3))
    assert moved(metadata, 1, 3) is ErrorCode.NONE
    assert (state(metadata).adding, state(metadata).removing) == ((3,), (2,))
