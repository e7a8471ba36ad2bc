"""A log of share groups' states is read with few batches a turn of the loop, however long its records are."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka_broker.coordinator.share import share_loading
from kavka_broker.core.share.packed_batches import PackedBatches
from kavka_broker.core.share.share_records import (
    ShareSnapshotKey,
    ShareUpdateKey,
    ShareUpdateValue,
    Snapshot,
    frame,
)
from kavka_broker.core.share.share_states import SharePartitionKey, ShareStates
from kavka_broker.core.share.state_batches import StateBatch
from kavka_broker.protocol.coordinator_records import frame_key, frame_value
from kavka_broker.protocol.messages.share import share_snapshot_value as snapshots
from kavka_broker.protocol.messages.share import share_update_value as updates
from kavka_broker.protocol.records.record import build_batch

COUNT = 5_000
ROWS = [StateBatch(3 * number, 3 * number + 1, 2 * (number % 2), 1) for number in range(COUNT)]
KEY = "g", bytes(16), 0
Framed = tuple[bytes, bytes | None]


def update(*, deliveries: int) -> Framed:
    batches = [updates.StateBatch(row.first_offset, row.last_offset, 2, deliveries) for row in ROWS]
    return frame((ShareUpdateKey(*KEY), ShareUpdateValue(0, 1, 0, 0, batches)))


def snapshot() -> Framed:
    return frame((ShareSnapshotKey(*KEY), Snapshot(0, 0, 0, 0, 0, 1, 1, PackedBatches.of(ROWS))))


def snapshot_in_another_order() -> Framed:
    rows = [snapshots.StateBatch(*row) for row in reversed(ROWS)]
    return frame_key(ShareSnapshotKey(*KEY)), frame_value(snapshots.ShareSnapshotValue(0, 0, 0, 0, 0, 1, 1, rows))


class Log:
    """A led partition whose log is one batch."""

    def __init__(self, records: list[Framed]) -> None:
        self.log = SimpleNamespace(log_start_offset=0, log_end_offset=len(records))
        self._batch = build_batch(records, timestamp_ms=7)

    def read(self, *_: object, **__: object) -> Any:
        return SimpleNamespace(parts=[self._batch])


class Counted(ShareStates):
    """States that count what is merged into them in the present turn."""

    def __init__(self) -> None:
        super().__init__(500)
        self.merged = 0

    def replay(self, key: Any, value: Any, *arguments: Any, **named: Any) -> int:
        self.merged += len(getattr(value, "state_batches", ()))
        return super().replay(key, value, *arguments, **named)


@pytest.mark.parametrize(
    ("records", "deliveries", "counted"),
    [
        ([snapshot_in_another_order], 1, 0),
        ([snapshot, lambda: update(deliveries=2)], 2, 1),
        ([lambda: update(deliveries=1), lambda: update(deliveries=2)], 2, 2),
    ],
)
def test_a_long_record_is_taken_over_in_parts(
    records: list[Callable[[], Framed]], deliveries: int, counted: int
) -> None:
    states, turns = Counted(), 0
    load = share_loading.load(cast(Any, Log([make() for make in records])), states)
    with pytest.raises(StopIteration) as ended:
        while True:
            load.send(None)
            assert states.merged <= 2 * share_loading.COST_PER_SLICE_MAX / share_loading.BATCH_COST
            states.merged, turns = 0, turns + 1
    state = states.by_key[SharePartitionKey(*KEY)]
    assert (ended.value.value, state.updates) == (len(records), counted)
    assert [batch[:2] for batch in state.batches] == [row[:2] for row in ROWS]
    assert {batch.delivery_count for batch in state.batches} == {deliveries}
    assert turns >= COUNT * share_loading.BATCH_COST // share_loading.COST_PER_SLICE_MAX


def test_a_log_of_short_records_is_read_in_turns_by_their_batches() -> None:
    """32 updates of 100 batches each are in one read of the log."""
    some = [updates.StateBatch(*row) for row in ROWS[:100]]
    records = [frame((ShareUpdateKey(*KEY), ShareUpdateValue(0, 1, 0, 0, some)))] * 32
    states, turns = Counted(), 0
    load = share_loading.load(cast(Any, Log(records)), states)
    with pytest.raises(StopIteration):
        while True:
            load.send(None)
            turns += 1
    assert states.by_key[SharePartitionKey(*KEY)].updates == 32
    assert turns > 32 * 100 * share_loading.BATCH_COST // share_loading.COST_PER_SLICE_MAX
