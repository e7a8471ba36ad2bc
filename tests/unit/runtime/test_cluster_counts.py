"""What happened to the cluster is counted once, where it belongs."""

from types import SimpleNamespace
from typing import Any, cast

from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.runtime.cluster_counts import ClusterCounts

TOPIC = b"t" * 16


def counted(*records: PartitionChangeRecord, is_leader: bool = True) -> ClusterCounts:
    """After changes of `t-0`, whose in-sync set is 1, 2, 3 until then."""
    topics = SimpleNamespace(by_id=lambda _: SimpleNamespace(name="t"))
    partition = SimpleNamespace(is_leader=is_leader, state=SimpleNamespace(isr=(1, 2, 3)))
    replicas = SimpleNamespace(get=lambda name, index: partition if (name, index) == ("t", 0) else None)
    counts = ClusterCounts(cast(Any, SimpleNamespace(topics=topics)))
    counts.count(records, cast(Any, replicas))
    return counts


def test_a_smaller_set_is_a_shrink_and_a_larger_one_an_expansion() -> None:
    shrunk = counted(PartitionChangeRecord(0, TOPIC, isr=[1, 2]))
    assert (shrunk.isr_shrinks, shrunk.isr_expands, shrunk.elections) == (1, 0, 0)
    expanded = counted(PartitionChangeRecord(0, TOPIC, isr=[1, 2, 3, 4]))
    assert (expanded.isr_shrinks, expanded.isr_expands) == (0, 1)
    assert not counted(PartitionChangeRecord(0, TOPIC, isr=[3, 2, 1])).isr_shrinks


def test_only_the_leader_counts_its_sets() -> None:
    assert not counted(PartitionChangeRecord(0, TOPIC, isr=[1]), is_leader=False).isr_shrinks
    assert not counted(PartitionChangeRecord(1, TOPIC, isr=[1])).isr_shrinks


def test_a_controller_alone_has_no_sets() -> None:
    counts = ClusterCounts(cast(Any, SimpleNamespace()))
    counts.count([PartitionChangeRecord(0, TOPIC, isr=[1], leader=1)], None)
    assert (counts.isr_shrinks, counts.elections) == (0, 1)


def test_elections_are_counted_clean_and_unclean() -> None:
    clean, unclean = PartitionChangeRecord(0, TOPIC, leader=2), PartitionChangeRecord(0, TOPIC, leader=2)
    unclean.leader_recovery_state = 1
    nobody = PartitionChangeRecord(0, TOPIC, leader=-1)
    counts = counted(clean, unclean, nobody, PartitionChangeRecord(0, TOPIC))
    assert (counts.elections, counts.unclean_elections) == (2, 1)
