"""Snapshots as bytes: the same as a message's, and what is not as this broker writes it is read as a message."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.share import share_records
from kavka_broker.core.share.packed_batches import PackedBatches
from kavka_broker.core.share.share_records import ShareSnapshotKey, ShareUpdateKey, Snapshot, frame, read, read_parts
from kavka_broker.core.share.share_states import ShareStates
from kavka_broker.core.share.state_batches import StateBatch, combine
from kavka_broker.protocol.coordinator_records import frame_key, frame_value
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.messages.share import share_snapshot_value as messages
from kavka_broker.protocol.messages.share import share_update_value as updates

KEY, UPDATE_KEY = ShareSnapshotKey("g", bytes(16), 3), ShareUpdateKey("g", bytes(16), 3)
batches = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 2**40),
        st.integers(0, 9),
        st.sampled_from([0, 2, 4]),
        st.integers(0, 2**15 - 1),
    ),
    max_size=200,
)
epochs = st.integers(0, 2**31 - 1)


def as_message(snapshot: Snapshot) -> messages.ShareSnapshotValue:
    return messages.ShareSnapshotValue(
        snapshot.snapshot_epoch,
        snapshot.state_epoch,
        snapshot.leader_epoch,
        snapshot.start_offset,
        snapshot.delivery_complete_count,
        snapshot.create_timestamp,
        snapshot.write_timestamp,
        [messages.StateBatch(*batch) for batch in snapshot.batches],
    )


@given(batches, epochs, st.integers(-1, 5), st.integers(-1, 2**40))
def test_a_snapshot_is_a_message_of_apache_kafka(
    some: list[StateBatch], epoch: int, complete: int, start_offset: int
) -> None:
    packed = PackedBatches.of(combine(some, max(start_offset, 0)))
    snapshot = Snapshot(epoch, 1, 2, start_offset, complete, 7, 9, packed)
    key, value = frame((KEY, snapshot))
    assert (key, value) == (frame_key(KEY), frame_value(as_message(snapshot)))
    assert read(key, value) == (KEY, snapshot)


@pytest.mark.parametrize(
    "rows", [[(5, 9, 2, 1), (0, 3, 0, 1)], [(0, 3, 0, 1), (4, 9, 0, 1)], [(0, 5, 0, 1), (3, 9, 2, 2)]]
)
def test_batches_in_another_order_are_read_as_well(rows: list[tuple[int, int, int, int]]) -> None:
    value = messages.ShareSnapshotValue(1, 1, 1, 0, 0, 0, 0, [messages.StateBatch(*row) for row in rows])
    found = read(frame_key(KEY), frame_value(value))
    assert found is not None
    assert isinstance(found[1], Snapshot)
    assert list(found[1].batches) == combine([StateBatch(*row) for row in rows], 0)


def test_tagged_fields_of_a_later_release_are_passed_over() -> None:
    batch = StateBatch(3, 9, 2, 1)
    _, value = frame((KEY, Snapshot(1, 1, 1, 0, -1, 0, 0, PackedBatches.of([batch]))))
    assert value is not None
    tagged = value[:-2] + b"\1\5\1x" + b"\0"  # the batch has a field with the tag 5
    found = read(frame_key(KEY), tagged)
    assert found is not None
    assert isinstance(found[1], Snapshot)
    assert list(found[1].batches) == [batch]


orders = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 40),
        st.integers(0, 9),
        st.sampled_from([0, 2, 4]),
        st.integers(0, 3),
    ),
    max_size=12,
)


@given(orders, orders, st.integers(-1, 30), st.booleans(), st.integers(1, 5), st.integers(1, 5))
def test_the_parts_of_records_give_the_state_of_the_whole(
    known: list[StateBatch], written: list[StateBatch], start: int, is_tidy: bool, part: int, checked: int
) -> None:
    rows = combine(known, max(start, 0)) if is_tidy else known
    snapshot = messages.ShareSnapshotValue(4, 1, 2, start, 3, 5, 6, [messages.StateBatch(*row) for row in rows])
    update = updates.ShareUpdateValue(4, 3, start, 7, [updates.StateBatch(*row) for row in written])
    log = [(frame_key(KEY), frame_value(snapshot)), (frame_key(UPDATE_KEY), frame_value(update))]
    whole, parted = ShareStates(500), ShareStates(500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(share_records, "BATCHES_PER_PART_MAX", part)
        patch.setattr(share_records, "BATCHES_CHECKED_MAX", checked)
        for offset, (key, value) in enumerate(log):
            record = read(key, value)
            assert record is not None
            whole.replay(*record, offset, 8)
            parts = [some for some in read_parts(key, value) if some is not None]
            assert all(len(getattr(content, "state_batches", ())) <= part for _, content in parts)
            for number, some in enumerate(parts):
                parted.replay(*some, offset, 8, goes_on=number > 0)
            assert parted.by_key == whole.by_key
            assert parted.size_bytes == whole.size_bytes


def test_what_has_fields_of_a_later_release_is_one_part_and_an_unknown_record_none() -> None:
    _, value = frame((KEY, Snapshot(1, 1, 1, 0, -1, 0, 0, PackedBatches.of([StateBatch(3, 9, 2, 1)]))))
    assert value is not None
    tagged = value[:-2] + b"\1\5\1x" + b"\0"
    assert list(read_parts(frame_key(KEY), tagged)) == [read(frame_key(KEY), tagged)]
    assert list(read_parts(frame_key(KEY), None)) == [(KEY, None)]
    assert list(read_parts(b"\0\7", value)) == []


@given(st.binary(max_size=90), st.booleans())
def test_any_bytes_raise_only_protocol_violations(garbage: bytes, is_snapshot: bool) -> None:
    key = frame_key(KEY) if is_snapshot else struct.pack(">h", 1) + garbage
    with contextlib.suppress(ProtocolViolation):
        read(key, b"\0\0" + garbage)
    with contextlib.suppress(ProtocolViolation):
        list(read_parts(key, b"\0\0" + garbage))
    with contextlib.suppress(ProtocolViolation):
        read(garbage, garbage)
    with contextlib.suppress(ProtocolViolation):
        list(read_parts(garbage, garbage))


def test_a_snapshot_is_put_together_without_an_object_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 batches are the most that a share partition can have: a step of the loop has to do for them."""
    packed = PackedBatches.of([StateBatch(offset, offset, 2 * (offset % 2), 1) for offset in range(10_000)])
    monkeypatch.setattr(share_records, "frame_value", None)
    monkeypatch.setattr(share_records, "unframe", lambda *_: (KEY, None))
    monkeypatch.setattr(share_records, "StateBatch", None)
    snapshot = Snapshot(1, 1, 1, 0, 0, 0, 0, packed)
    key, value = frame((KEY, snapshot))
    assert read(key, value) == (KEY, snapshot)
