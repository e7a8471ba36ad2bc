"""Versions of Metadata before 6 know fewer errors, and version 0 names no replica that is offline."""

from kavka_broker.loop.slices import Cost, at_once
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kavka_broker.request.old_metadata import topic_as_of

DOWN = MetadataResponsePartition(0, 0, 1, 5, [1, 2, 3], [1, 3], [3])
UP = MetadataResponsePartition(0, 1, 2, 5, [1, 2], [1, 2], [])
HIDDEN = MetadataResponsePartition(ErrorCode.LISTENER_NOT_FOUND, 2, -1, 5, [3, 1], [3], [3])
SHOWN = MetadataResponseTopic(name="t", partitions=[DOWN, UP, HIDDEN])


def as_of(version: int) -> list[tuple[int, list[int], list[int]]]:
    shown = at_once(topic_as_of(version, SHOWN, Cost()))
    return [(partition.error_code, partition.replica_nodes, partition.isr_nodes) for partition in shown.partitions]


def test_version_0_leaves_out_replicas_that_are_offline() -> None:
    assert as_of(0) == [
        (ErrorCode.REPLICA_NOT_AVAILABLE, [1, 2], [1]),
        (ErrorCode.NONE, [1, 2], [1, 2]),
        (ErrorCode.LEADER_NOT_AVAILABLE, [1], []),
    ]
    assert DOWN.replica_nodes == [1, 2, 3]  # what is shared stays as it is


def test_versions_before_6_know_no_missing_listener() -> None:
    for version in (1, 5):
        assert [error for error, _, _ in as_of(version)] == [0, 0, ErrorCode.LEADER_NOT_AVAILABLE]
        assert as_of(version)[0][1:] == ([1, 2, 3], [1, 3])
    assert at_once(topic_as_of(6, SHOWN, Cost())) is SHOWN
