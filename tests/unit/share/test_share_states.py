"""The share coordinator's rules: who may write, what is read, and which record each write becomes."""

from collections.abc import Callable

import pytest

from kavka_broker.core.share import share_states
from kavka_broker.core.share.packed_batches import ROW_BYTES, PackedBatches
from kavka_broker.core.share.share_records import ShareRecord, Snapshot
from kavka_broker.core.share.share_states import UNSET, SharePartitionKey, ShareStates, WrittenState
from kavka_broker.core.share.state_batches import StateBatch
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.share.share_update_value import ShareUpdateValue

KEY = SharePartitionKey("g", bytes(16), 0)
OTHER = SharePartitionKey("g", bytes(16), 1)


class Log:
    """States, and the records that made them."""

    def __init__(self, updates_max: int = 3) -> None:
        self.states = ShareStates(updates_max)
        self.records: list[ShareRecord] = []

    def add(self, records: list[ShareRecord]) -> None:
        for key, value in records:
            self.states.replay(key, value, len(self.records), 1000)
            self.records.append((key, value))

    def begin(self, state_epoch: int = 1, start_offset: int = UNSET) -> None:
        self.add(self.states.initialize(KEY, state_epoch, start_offset, 1000))

    def write(
        self, *batches: tuple[int, int, int, int], state: int = 1, leader: int = 5, start: int = 0, complete: int = 0
    ) -> None:
        written = WrittenState(state, leader, start, complete, [StateBatch(*batch) for batch in batches])
        self.add(self.states.write(KEY, written, 1000))


def code_of(act: Callable[[], object]) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        act()
    return refused.value.code


def test_nothing_is_written_to_or_read_from_what_was_not_initialized() -> None:
    log = Log()
    assert code_of(log.write) is ErrorCode.INVALID_REQUEST
    assert code_of(lambda: log.states.read(KEY, 5, 1000)) is ErrorCode.INVALID_REQUEST
    assert log.states.delete(KEY) == []


def test_an_earlier_leader_is_fenced() -> None:
    log = Log()
    log.begin()
    state, records = log.states.read(KEY, 5, 1000)
    assert (state.state_epoch, state.start_offset) == (1, UNSET)
    log.add(records)
    assert log.states.by_key[KEY].leader_epoch == 5
    assert code_of(lambda: log.write(leader=4)) is ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(lambda: log.states.read(KEY, 4, 1000)) is ErrorCode.FENCED_LEADER_EPOCH
    log.write(leader=UNSET)
    assert log.states.read(KEY, 5, 1000)[1] == []


def test_an_earlier_state_is_fenced() -> None:
    log = Log()
    log.begin(state_epoch=3)
    assert code_of(lambda: log.write(state=2)) is ErrorCode.FENCED_STATE_EPOCH
    assert code_of(lambda: log.states.initialize(KEY, 2, 0, 1000)) is ErrorCode.FENCED_STATE_EPOCH
    log.write(state=3)
    log.begin(state_epoch=3, start_offset=7)  # moved by an administrator, in the same epoch of the group
    assert log.states.by_key[KEY].start_offset == 7


def test_updates_are_followed_by_a_snapshot() -> None:
    log = Log(updates_max=3)
    log.begin(start_offset=0)
    for offset in range(5):
        log.write((offset, offset, 2, 1))
    kinds = [type(value) for _, value in log.records]
    assert kinds == [Snapshot, *[ShareUpdateValue] * 3, Snapshot, ShareUpdateValue]
    epochs = [value.snapshot_epoch for _, value in log.records if isinstance(value, Snapshot)]
    assert epochs == [0, 1]
    assert log.states.by_key[KEY].batches == PackedBatches.of([StateBatch(0, 4, 2, 1)])
    assert at_once(log.states.lowest_offset()) == 4, "what is before the snapshot may be pruned"


def test_the_start_never_moves_back_in_a_state() -> None:
    log = Log()
    log.begin(start_offset=0)
    log.write(start=10)
    log.write((3, 12, 0, 1), start=2)  # a write that was late
    assert log.states.by_key[KEY].start_offset == 10
    assert log.states.by_key[KEY].batches == PackedBatches.of([StateBatch(10, 12, 0, 1)])
    log.begin(state_epoch=2, start_offset=4)
    assert log.states.by_key[KEY].start_offset == 4
    assert log.states.by_key[KEY].batches == PackedBatches()


def test_a_deleted_state_is_as_one_that_never_was() -> None:
    log = Log()
    log.begin()
    log.write((0, 3, 2, 1))
    log.add(log.states.delete(KEY))
    assert log.states.by_key == {}
    assert code_of(log.write) is ErrorCode.INVALID_REQUEST
    log.begin()
    assert log.states.by_key[KEY].batches == PackedBatches()


def test_a_group_begins_at_an_offset_or_at_one_that_is_not_chosen_yet() -> None:
    log = Log()
    assert code_of(lambda: log.begin(start_offset=-5)) is ErrorCode.INVALID_REQUEST
    log.begin(start_offset=0)
    assert code_of(lambda: log.write(start=-2)) is ErrorCode.INVALID_REQUEST


def test_the_share_partitions_of_a_group_have_its_name_in_common() -> None:
    log = Log()
    for index in (0, 1, 0, 2):
        name = b"a group".decode()  # as each record of a log that is read has a name of its own
        log.add(log.states.initialize(SharePartitionKey(name, bytes(16), index), 1, 0, 1000))
    assert len({id(key.group_id) for key in log.states.by_key}) == 1
    for key in list(log.states.by_key):
        log.add(log.states.delete(key))
    log.begin()
    assert list(log.states.by_key) == [KEY]


def test_states_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs no more memory is always taken: a group gets out of its bound by going on."""
    monkeypatch.setattr(share_states, "STATES_BYTES_MAX", share_states.STATE_BYTES + 4 + 3 * ROW_BYTES)
    log = Log(updates_max=100)
    log.begin(start_offset=0)
    assert code_of(lambda: log.states.initialize(OTHER, 1, 0, 1000)) is ErrorCode.POLICY_VIOLATION
    log.write((1, 1, 2, 1), (3, 3, 2, 1), (5, 5, 2, 1))
    assert code_of(lambda: log.write((7, 7, 2, 1))) is ErrorCode.POLICY_VIOLATION
    log.write((3, 3, 2, 2))
    log.write((2, 2, 2, 1), start=2)
    log.write((7, 7, 2, 1), start=4)
    assert list(log.states.by_key[KEY].batches) == [StateBatch(5, 5, 2, 1), StateBatch(7, 7, 2, 1)]
    log.add(log.states.delete(KEY))
    assert log.states.size_bytes == 0


def test_a_long_name_counts_once_a_group() -> None:
    log, long = Log(), "g" * 1000
    for partition in range(3):
        log.add(log.states.initialize(SharePartitionKey(long, bytes(16), partition), 1, 0, 1000))
    assert log.states.size_bytes == 3 * share_states.STATE_BYTES + 4 * 1000


def test_a_write_of_a_state_that_is_none_is_refused() -> None:
    log = Log()
    log.begin(start_offset=0)
    assert code_of(lambda: log.write((1, 1, 5, 1))) is ErrorCode.INVALID_REQUEST
