"""Fifty nodes, rolled in batches: a fifth of the steps of one by one at most, and no partition below its min ISR."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_operator.domain.observed import SeenPartition, SeenQuorum, Survey, WantedNode
from kavka_operator.reconcile.rollout.batches import next_batch
from kavka_operator.reconcile.rollout.diagnose import Diagnosis, Standing

pytestmark = pytest.mark.thorough

NODES, RACKS, PARTITIONS, CONTROLLERS = 50, 5, 400, 5
IN_SYNC_MIN = 2


def spread_over_racks(random: Random) -> tuple[SeenPartition, ...]:
    """Partitions of three replicas, each in another rack, as every placement of Kafka's makes them."""
    found = []
    for index in range(PARTITIONS):
        racks = random.sample(range(RACKS), 3)
        replicas = tuple(random.randrange(NODES // RACKS) * RACKS + rack for rack in racks)
        found.append(SeenPartition("t", index, replicas[0], replicas, replicas, IN_SYNC_MIN))
    return tuple(found)


def without(partition: SeenPartition, down: set[int]) -> SeenPartition:
    isr = tuple(replica for replica in partition.replicas if replica not in down)
    return SeenPartition("t", partition.index, isr[0], partition.replicas, isr, IN_SYNC_MIN)


def steps(partitions: tuple[SeenPartition, ...], most: int) -> list[set[int]]:
    """The batches of a whole roll; each is back before the next begins."""
    voters = tuple(range(CONTROLLERS))
    quorum = SeenQuorum(2, voters, dict.fromkeys(voters, 0))
    left = [Diagnosis(WantedNode(number, "new"), Standing.STALE) for number in range(NODES)]
    left.sort(key=lambda diagnosis: (diagnosis.id == quorum.leader, diagnosis.id))
    found = []
    while left:
        batch = {diagnosis.id for diagnosis in next_batch(left, Survey(partitions, quorum), most).nodes}
        assert batch, "all are in sync: some node may go"
        for partition in partitions:
            assert len(without(partition, batch).isr) >= IN_SYNC_MIN, f"{batch} leaves too few of {partition}"
        assert len(batch & set(voters)) <= CONTROLLERS // 2
        left = [diagnosis for diagnosis in left if diagnosis.id not in batch]
        found.append(batch)
    return found


@given(st.integers(0, 2**32))
def test_a_roll_of_fifty_nodes_takes_a_fifth_of_the_steps(seed: int) -> None:
    partitions = spread_over_racks(Random(seed))
    assert len(steps(partitions, NODES)) <= NODES // 5
    assert max(map(len, steps(partitions, 4))) <= 4


@given(st.integers(0, 2**32))
def test_without_racks_every_batch_is_as_safe(seed: int) -> None:
    random = Random(seed)
    chosen = [tuple(random.sample(range(NODES), 3)) for _ in range(100)]
    partitions = tuple(
        SeenPartition("t", index, found[0], found, found, IN_SYNC_MIN) for index, found in enumerate(chosen)
    )
    assert len(steps(partitions, NODES)) < NODES


def test_one_by_one_takes_a_step_for_each_node() -> None:
    assert len(steps(spread_over_racks(Random(1)), 1)) == NODES
