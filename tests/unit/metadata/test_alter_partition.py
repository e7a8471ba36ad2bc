"""What a leader may make of its in-sync set, and what each refusal is called."""

import pytest

from kavka_broker.core.metadata.decide.alter_partition import alter_partitions
from kavka_broker.core.metadata.decide.heartbeats import leave
from kavka_broker.core.metadata.decide.reassignments import Reassign, reassign
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.core.partition.isr_proposal import InSyncMember, IsrChange
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from tests.support.brokers import TOPIC_ID, epoch_of, proposal, propose, replicated, state, told
from tests.support.cluster import enact, join, uuid


def test_a_smaller_set_is_written_and_answered_as_it_will_be() -> None:
    metadata = replicated(1, 2, 3)
    before = state(metadata)
    decision = alter_partitions(metadata, 1, epoch_of(metadata, 1), [proposal(metadata, 1, 2)])
    assert decision.records == [PartitionChangeRecord(0, TOPIC_ID, isr=[1, 2])]
    (after,) = decision.response
    assert after == before._replace(isr=(1, 2), partition_epoch=before.partition_epoch + 1)


def test_the_set_that_is_there_writes_nothing() -> None:
    metadata = replicated(1, 2, 3)
    decision = alter_partitions(metadata, 1, epoch_of(metadata, 1), [proposal(metadata, 1, 2, 3)])
    assert (decision.records, decision.response) == ([], [state(metadata)])


def test_who_leaves_below_the_bound_is_eligible_until_enough_are_back() -> None:
    metadata = replicated(1, 2, 3)
    propose(metadata, 1)
    assert state(metadata).elr == (2, 3)
    propose(metadata, 1, 3)
    assert state(metadata).elr == ()


def test_a_stale_leader_broker_is_refused_altogether() -> None:
    metadata = replicated(1, 2, 3)
    with pytest.raises(BrokerError) as refusal:
        alter_partitions(metadata, 1, epoch_of(metadata, 1) + 1, [proposal(metadata, 1)])
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("isr", "wrong", "code"),
    [
        ((1, 2), {"partition": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((1, 2), {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ((1, 2), {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ((1, 2), {"leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ((1, 2), {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 4), {}, ErrorCode.INVALID_REQUEST),
        ((1, 1, 2), {}, ErrorCode.INVALID_REQUEST),
        ((2, 3), {}, ErrorCode.INVALID_REQUEST),
        ((), {}, ErrorCode.INVALID_REQUEST),
        ((1, 2), {"recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ((1,), {"recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ((1,), {"recovery_state": 7}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_of_the_isr_that_may_not_be_is_refused(
    isr: tuple[int, ...], wrong: dict[str, int], code: ErrorCode
) -> None:
    metadata = replicated(1, 2, 3, others=(4,))
    # Epochs above zero, so that there are older ones: 2 leads for a while, then 1 again.
    enact(metadata, leave(metadata, 1))
    join(metadata, 1, incarnation=1)
    propose(metadata, 2, 3, 1)
    enact(metadata, leave(metadata, 2))
    told(metadata, 2)
    assert state(metadata).leader == 1
    offset = metadata.offset
    assert propose(metadata, *isr, **wrong) is code
    assert metadata.offset == offset


def test_a_topic_that_is_gone() -> None:
    metadata = replicated(1, 2)
    change = IsrChange(uuid(9), 0, 0, 0, (InSyncMember(1),))
    assert alter_partitions(metadata, 1, epoch_of(metadata, 1), [change]).response == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_only_the_leader_may_ask() -> None:
    metadata = replicated(1, 2, 3)
    decision = alter_partitions(metadata, 2, epoch_of(metadata, 2), [proposal(metadata, 1, 2)])
    assert decision.response == [ErrorCode.INVALID_REQUEST]


def test_the_same_partition_twice_counts_once() -> None:
    metadata = replicated(1, 2, 3)
    asked = [proposal(metadata, 1, 2), proposal(metadata, 1, 3)]
    decision = alter_partitions(metadata, 1, epoch_of(metadata, 1), asked)
    assert [type(one) for one in decision.response] == [PartitionState, ErrorCode]
    assert len(decision.records) == 1


def test_a_fenced_member_is_ineligible() -> None:
    metadata = replicated(1, 2, 3)
    enact(metadata, leave(metadata, 3))
    assert propose(metadata, 1, 2, 3) is ErrorCode.INELIGIBLE_REPLICA
    told(metadata, 3)
    after = propose(metadata, 1, 2, 3)
    assert isinstance(after, PartitionState)
    assert after.isr == (1, 2, 3)


def test_a_member_about_to_stop_is_ineligible() -> None:
    metadata = replicated(1, 2, 3)
    told(metadata, 3, wants_shutdown=True, handover_seen=False)
    assert propose(metadata, 1, 2, 3) is ErrorCode.INELIGIBLE_REPLICA


def test_another_incarnation_of_a_member_is_ineligible() -> None:
    # KIP-903: it was caught up, crashed, and is back without the end of its log.
    metadata = replicated(1, 2, 3)
    propose(metadata, 1, 2)
    seen = proposal(metadata, 1, 2, 3)
    join(metadata, 3, incarnation=1)
    decision = alter_partitions(metadata, 1, epoch_of(metadata, 1), [seen])
    assert decision.response == [ErrorCode.INELIGIBLE_REPLICA]
    older = IsrChange(
        TOPIC_ID, 0, seen.leader_epoch, seen.partition_epoch, (InSyncMember(1), InSyncMember(2), InSyncMember(3))
    )
    (after,) = alter_partitions(metadata, 1, epoch_of(metadata, 1), [older]).response
    assert isinstance(after, PartitionState)


def test_a_leader_that_recovers_says_when_it_is_done() -> None:
    metadata = replicated(1, 2, min_insync=1, unclean_leader_election_enable="true")
    enact(metadata, leave(metadata, 2))
    enact(metadata, leave(metadata, 1))
    told(metadata, 2)
    recovering = state(metadata)
    assert (recovering.leader, recovering.isr, recovering.recovery_state) == (2, (2,), 1)
    assert propose(metadata, 2, recovery_state=1) == recovering
    told(metadata, 1)
    assert propose(metadata, 2, 1, recovery_state=1) is ErrorCode.INVALID_REQUEST
    after = propose(metadata, 2, recovery_state=0)
    assert isinstance(after, PartitionState)
    assert after.recovery_state == 0


def test_the_change_that_completes_a_reassignment_may_elect_another() -> None:
    metadata = replicated(1, 2, others=(3, 4))
    enact(metadata, reassign(metadata, [Reassign("t", 0, (3, 4))]))
    after = propose(metadata, 1, 2, 3)
    assert isinstance(after, PartitionState)
    assert propose(metadata, 1, 2, 3, 4) is ErrorCode.NEW_LEADER_ELECTED
    done = state(metadata)
    assert (done.replicas, done.isr, done.leader, done.adding, done.removing) == ((3, 4), (3, 4), 3, (), ())
