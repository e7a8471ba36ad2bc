"""How a partition settles, rule by rule: who is in sync, who is eligible, who leads."""

import pytest

from kavka_broker.core.metadata.decide.election_policy import Rules
from kavka_broker.core.metadata.decide.partition_change import difference, settle
from kavka_broker.core.metadata.image.topics import NO_LEADER, RECOVERED, RECOVERING, PartitionState, changed
from tests.support.cluster import uuid

ELR = Rules(min_insync=2, tracks_eligible=True)
UNCLEAN = Rules(min_insync=2, unclean_election=True, tracks_eligible=True)
BEFORE_ELR = Rules(min_insync=2)
Ids = tuple[int, ...]


def partition(isr: Ids, leader: int, elr: Ids = (), last: Ids = (), replicas: Ids = (1, 2, 3)) -> PartitionState:
    return PartitionState(replicas, isr, leader, leader_epoch=5, partition_epoch=9, elr=elr, last_known_elr=last)


def settled(
    before: PartitionState, isr: Ids, alive: set[int], rules: Rules = ELR, *, preferred: bool = False, lost: Ids = ()
) -> PartitionState:
    return settle(
        before,
        before._replace(isr=isr),
        rules,
        lambda _, broker_id: broker_id in alive,
        preferred=preferred,
        lost=lost,
    )


@pytest.mark.parametrize(
    ("before", "isr", "alive", "rules", "expected"),
    [
        # enough are in sync: no other is eligible beside them, and the leader stays
        (partition((1, 2, 3), 1), (1, 2), {1, 2}, ELR, ((1, 2), (), 1, ())),
        (partition((1, 2, 3), 2), (1, 2), {1, 2}, ELR, ((1, 2), (), 2, ())),
        # the leader goes: the first of the replicas that is in sync
        (partition((2, 3, 1), 1), (2, 3), {2, 3}, ELR, ((2, 3), (), 2, ())),
        (partition((3, 2), 1), (3, 2), {2, 3}, ELR, ((3, 2), (), 2, ())),
        # too few are in sync: a replica that leaves stays eligible
        (partition((1, 2), 1), (1,), {1}, ELR, ((1,), (2,), 1, ())),
        (partition((1, 2), 1), (2,), {2}, ELR, ((2,), (1,), 2, ())),
        (partition((1,), 1, (2,)), (1,), {1}, ELR, ((1,), (2,), 1, ())),
        # the last one goes: all are eligible, none leads, and the last leader is remembered
        (partition((2,), 2, (1,)), (), set(), ELR, ((), (1, 2), NO_LEADER, (2,))),
        # one of the eligible is back: it leads and is in sync alone
        (partition((), NO_LEADER, (1, 2), (2,)), (), {1}, ELR, ((1,), (2,), 1, ())),
        # in sync comes before eligible, wherever they stand among the replicas
        (partition((3,), NO_LEADER, (1,)), (3,), {1, 3}, ELR, ((3,), (1,), 3, ())),
        # none is in sync or eligible: only the last leader may lead, and that is unclean
        (partition((), NO_LEADER, (), (2,)), (), {1, 3}, ELR, ((), (), NO_LEADER, (2,))),
        (partition((), NO_LEADER, (), (2,)), (), {1, 2}, ELR, ((2,), (), 2, ())),
        (partition((), NO_LEADER, (), (2, 3)), (), {2, 3}, ELR, ((), (), NO_LEADER, (2, 3))),
        # an eligible replica that is away keeps the others from an unclean election, unless that is allowed
        (partition((), NO_LEADER, (2,), (2,)), (), {1, 3}, ELR, ((), (2,), NO_LEADER, (2,))),
        (partition((), NO_LEADER, (2,), (2,)), (), {1, 3}, UNCLEAN, ((1,), (), 1, ())),
        # enough are in sync again
        (partition((1,), 1, (2, 3)), (1, 3), {1, 3}, ELR, ((1, 3), (), 1, ())),
        # without KIP-966 the last one in sync stays so, and none is eligible
        (partition((1, 2), 1), (2,), {2}, BEFORE_ELR, ((2,), (), 2, ())),
        (partition((2,), 2), (), {1, 3}, BEFORE_ELR, ((2,), (), NO_LEADER, ())),
        (partition((2,), NO_LEADER), (2,), {2}, BEFORE_ELR, ((2,), (), 2, ())),
        # what was eligible when the feature was turned off may still lead
        (partition((), NO_LEADER, (2,), (2,)), (), {2}, BEFORE_ELR, ((2,), (), 2, ())),
    ],
)
def test_who_is_in_sync_eligible_and_leads(
    before: PartitionState, isr: Ids, alive: set[int], rules: Rules, expected: tuple[Ids, Ids, int, Ids]
) -> None:
    after = settled(before, isr, alive, rules)
    assert (after.isr, after.elr, after.leader, after.last_known_elr) == expected


def test_a_replica_that_may_have_lost_its_end_is_not_eligible() -> None:
    assert settled(partition((1, 2), 1), (1,), {1}, lost=(2,)).elr == ()
    assert settled(partition((1,), 1, (2, 3)), (1,), {1}, lost=(2,)).elr == (3,)
    after = settled(partition((1,), 1, (2,)), (), set(), lost=(1,))
    assert (after.isr, after.elr, after.leader, after.last_known_elr) == ((), (2,), NO_LEADER, (1,))


def test_fewer_replicas_than_the_bound_are_bound_by_their_number() -> None:
    after = settled(partition((1,), 1, replicas=(1,)), (1,), {1}, Rules(min_insync=3, tracks_eligible=True))
    assert (after.isr, after.elr) == ((1,), ())
    assert settled(partition((1,), 1, replicas=(1,)), (), set()).elr == (1,)


def test_an_elected_eligible_replica_that_is_enough_alone_leaves_no_other_eligible() -> None:
    """The bound was lowered while the ISR was empty: records of this leader alone are committed; only it has them."""
    one_is_enough = Rules(min_insync=1, tracks_eligible=True)
    after = settled(partition((), NO_LEADER, (1, 2), (2,)), (), {1}, one_is_enough)
    assert (after.isr, after.elr, after.leader, after.last_known_elr) == ((1,), (), 1, ())


@pytest.mark.parametrize(
    ("isr", "leader", "alive", "expected"),
    [
        ((1, 2, 3), 2, {1, 2, 3}, 1),
        ((2, 3), 3, {1, 2, 3}, 3),  # the preferred one is not in sync: the leader need not change
        ((1, 2, 3), 3, {2, 3}, 3),
        ((2, 3), NO_LEADER, {2, 3}, 2),
    ],
)
def test_the_preferred_replica_is_the_first(isr: Ids, leader: int, alive: set[int], expected: int) -> None:
    assert settled(partition(isr, leader), isr, alive, preferred=True).leader == expected


def test_an_election_begins_an_epoch_and_a_smaller_isr_does_not() -> None:
    assert settled(partition((1, 2, 3), 1), (1, 2), {1, 2}).leader_epoch == 5
    assert settled(partition((1, 2, 3), 1), (2, 3), {2, 3}).leader_epoch == 6
    assert settled(partition((1,), 1), (), set()).leader_epoch == 6


def test_after_an_unclean_election_the_leader_recovers() -> None:
    after = settled(partition((), NO_LEADER, (2,), (2,)), (), {3}, UNCLEAN)
    assert (after.leader, after.isr, after.recovery_state) == (3, (3,), RECOVERING)
    assert settled(partition((), NO_LEADER, (2,), (2,)), (), {2}, UNCLEAN).recovery_state == RECOVERED


def test_a_reassignment_is_complete_when_all_that_is_new_is_in_sync() -> None:
    directories = (uuid(1), uuid(2), uuid(3), uuid(4))
    before = PartitionState((3, 4, 1, 2), (1, 2), 1, adding=(3, 4), removing=(1, 2), directories=directories)
    alive = {1, 2, 3, 4}
    half = settled(before, (1, 2, 3), alive)
    assert (half.replicas, half.adding, half.leader, half.leader_epoch) == ((3, 4, 1, 2), (3, 4), 1, 0)
    after = settled(before, (1, 2, 3, 4), alive)
    assert after == PartitionState((3, 4), (3, 4), 3, leader_epoch=1, directories=directories[:2])


def test_a_replica_that_leaves_begins_an_epoch_even_under_the_same_leader() -> None:
    before = PartitionState((1, 2, 3), (1, 2, 3), 1, removing=(3,))
    after = settled(before, (1, 2, 3), {1, 2, 3})
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((1, 2), (1, 2), 1, 1)


def test_the_record_of_the_difference_makes_the_difference() -> None:
    before = PartitionState((3, 4, 1, 2), (1, 2), 1, 5, 9, adding=(3, 4), removing=(1, 2), directories=(uuid(1),) * 4)
    after = settled(before, (1, 2, 3, 4), {1, 2, 3, 4})
    record = difference(uuid(7), 2, before, after)
    assert record is not None
    assert changed(before, record) == after._replace(partition_epoch=10)
    assert difference(uuid(7), 2, before, before) is None


def test_the_record_says_only_what_changes() -> None:
    before = partition((1, 2, 3), 1)
    record = difference(uuid(7), 0, before, settled(before, (1, 2), {1, 2}))
    assert record is not None
    assert (record.isr, record.leader) == ([1, 2], -2)
    assert (record.replicas, record.directories, record.eligible_leader_replicas) == (None, None, None)
