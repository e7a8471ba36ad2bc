"""Snapshots: whole or not at all, and every byte counts."""

import pytest

from kavka_broker.controller.metadata_batches import control_batch, metadata_batch, read_batch
from kavka_broker.controller.snapshot_files import (
    GENESIS,
    RECORDS_PER_BATCH_MAX,
    SnapshotId,
    build,
    file_name,
    parse_id,
    read,
)
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.leader_change_message import LeaderChangeMessage, Voter
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.records.batch import split_batches
from tests.support.cluster import START_MS, uuid


def topics(count: int) -> list[Message]:
    return [TopicRecord(f"t{number}", uuid(number)) for number in range(count)]


def snapshot(count: int) -> bytes:
    return build([KRaftVersionRecord(0, 1)], topics(count), epoch=3, last_timestamp_ms=START_MS, now_ms=START_MS)


@pytest.mark.parametrize("count", [0, 1, RECORDS_PER_BATCH_MAX, RECORDS_PER_BATCH_MAX + 1])
def test_a_snapshot_is_read_back(count: int) -> None:
    assert list(read(snapshot(count))) == [KRaftVersionRecord(0, 1), *topics(count)]


def test_offsets_go_on_through_the_batches() -> None:
    headers = [header for header, _ in split_batches(memoryview(snapshot(RECORDS_PER_BATCH_MAX + 1)))]
    assert [header.base_offset for header in headers] == [0, 2, 1002, 1003]
    assert {header.leader_epoch for header in headers} == {3}


def test_a_snapshot_without_its_footer_is_refused() -> None:
    data = snapshot(3)
    ends = [0]
    for _, batch in split_batches(memoryview(data)):
        ends.append(ends[-1] + len(batch))
    for end in ends[:-1]:
        with pytest.raises(ProtocolViolation):
            list(read(data[:end]))


def test_a_flipped_bit_is_noticed() -> None:
    data = bytearray(snapshot(3))
    data[len(data) // 2] ^= 1
    with pytest.raises(ProtocolViolation):
        list(read(bytes(data)))


def test_records_behind_the_footer_are_refused() -> None:
    extra = metadata_batch(topics(1), base_offset=9, leader_epoch=3, now_ms=START_MS)
    with pytest.raises(ProtocolViolation, match="outside its header and footer"):
        list(read(snapshot(1) + bytes(extra)))


def test_names_tell_offset_and_epoch() -> None:
    name = "00000000000000000082-0000000003.checkpoint"
    assert file_name(SnapshotId(82, 3)) == name
    assert parse_id(name) == SnapshotId(82, 3)
    assert parse_id("bootstrap.checkpoint") is None
    assert parse_id(name + ".part") is None
    assert file_name(GENESIS) == "00000000000000000000-0000000000.checkpoint"


def test_both_kinds_of_batch_are_messages_with_offsets() -> None:
    change = LeaderChangeMessage(0, 1, [Voter(1)], [Voter(1)])
    control = control_batch([change], base_offset=7, leader_epoch=2, now_ms=START_MS)
    assert list(read_batch(memoryview(control))) == [(7, change)]
    plain = metadata_batch(topics(2), base_offset=8, leader_epoch=2, now_ms=START_MS)
    assert list(read_batch(memoryview(plain))) == list(enumerate(topics(2), 8))
