"""What a new share coordinator reads from the log is what the old one had: from the start, and after pruning."""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.share import share_states
from kavka_broker.core.share.packed_batches import PackedBatches
from kavka_broker.core.share.share_records import ShareRecord, frame, read
from kavka_broker.core.share.share_states import UNSET, SharePartitionKey, ShareState, ShareStates, WrittenState
from kavka_broker.core.share.state_batches import StateBatch, combine
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.share.share_update_value import ShareUpdateValue

KEYS = [SharePartitionKey("g", bytes(15) + bytes([number]), number % 2) for number in range(3)]


class Step(NamedTuple):
    """A command, with numbers that it may use."""

    kind: str
    key: SharePartitionKey
    epoch: int
    start: int
    batches: tuple[StateBatch, ...]


batches = st.builds(
    lambda first, size, state, count: StateBatch(first, first + size, state, count),
    st.integers(0, 20),
    st.integers(0, 5),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 4),
)
steps = st.builds(
    Step,
    st.sampled_from(["initialize", "write", "write", "write", "read", "delete", "snapshot"]),
    st.sampled_from(KEYS),
    st.integers(0, 3),
    st.integers(-1, 15),
    st.lists(batches, max_size=3).map(tuple),
)


def records_of(states: ShareStates, step: Step, now_ms: int) -> list[ShareRecord]:
    try:
        match step.kind:
            case "initialize":
                return states.initialize(step.key, step.epoch, step.start, now_ms)
            case "write":
                written = WrittenState(UNSET, step.epoch, step.start, 0, step.batches)
                return states.write(step.key, written, now_ms)
            case "read":
                return states.read(step.key, step.epoch, now_ms)[1]
            case "delete":
                return states.delete(step.key)
            case _:
                return states.snapshot(step.key, now_ms)
    except BrokerError:
        return []


def through_the_log(record: ShareRecord) -> ShareRecord:
    """The record as its bytes in the log are read."""
    found = read(*frame(record))
    assert found is not None
    return found


def play(story: list[Step], updates_max: int) -> tuple[ShareStates, list[tuple[int, ShareRecord]]]:
    live, log = ShareStates(updates_max), list[tuple[int, ShareRecord]]()
    for now_ms, step in enumerate(story, 1000):
        for record in records_of(live, step, now_ms):
            live.replay(*record, len(log), now_ms)
            log.append((now_ms, through_the_log(record)))
    return live, log


def replayed(
    log: list[tuple[int, ShareRecord]], start_offset: int, updates_max: int
) -> tuple[dict[SharePartitionKey, ShareState], int]:
    states = ShareStates(updates_max)
    for offset, (now_ms, record) in enumerate(log):
        if offset >= start_offset:
            states.replay(*record, offset, now_ms)
    return states.by_key, states.size_bytes


def check(story: list[Step], updates_max: int) -> None:
    live, log = play(story, updates_max)
    assert replayed(log, 0, updates_max) == (live.by_key, live.size_bytes)
    lowest = at_once(live.lowest_offset())
    start_offset = len(log) if lowest is None else lowest
    assert replayed(log, start_offset, updates_max) == (live.by_key, live.size_bytes), "pruned"
    assert live.size_bytes == sum(state.size_bytes for state in live.by_key.values()) + 4 * bool(live.by_key)


@given(st.lists(steps, max_size=25), st.integers(0, 4))
def test_a_replay_gives_what_the_live_coordinator_has(story: list[Step], updates_max: int) -> None:
    check(story, updates_max)


def snapshot_without_batches(key: SharePartitionKey, state: ShareState) -> ShareRecord:
    return ORIGINAL_SNAPSHOT(key, replace(state, batches=PackedBatches()))


def merge_that_forgets(known: ShareState, update: ShareUpdateValue) -> ShareState:
    batches = PackedBatches.of(combine(_of(update), max(update.start_offset, 0)))
    return replace(ORIGINAL_MERGE(known, update), batches=batches)


def _of(update: ShareUpdateValue) -> Iterator[StateBatch]:
    for batch in update.state_batches:
        yield StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)


ORIGINAL_SNAPSHOT, ORIGINAL_MERGE = share_states._snapshot, share_states._merged
STORY = [
    Step("initialize", KEYS[0], 1, 0, ()),
    Step("write", KEYS[0], 1, 0, (StateBatch(0, 3, 2, 1),)),
    Step("write", KEYS[0], 1, 0, (StateBatch(6, 9, 2, 1),)),
    Step("initialize", KEYS[1], 1, 0, ()),
    Step("write", KEYS[0], 1, 0, (StateBatch(12, 13, 0, 1),)),
    Step("write", KEYS[1], 1, 0, (StateBatch(0, 1, 0, 1),)),
]


def told_twice(story: list[Step]) -> dict[SharePartitionKey, ShareState]:
    """The states where no write becomes a snapshot: what the others must come to as well."""
    return play(story, 100)[0].by_key


@pytest.mark.parametrize(("name", "defect"), [("_snapshot", snapshot_without_batches), ("_merged", merge_that_forgets)])
def test_defects_are_found(monkeypatch: pytest.MonkeyPatch, name: str, defect: object) -> None:
    whole = {key: state.batches for key, state in told_twice(STORY).items()}
    check(STORY, 1)
    assert {key: state.batches for key, state in play(STORY, 1)[0].by_key.items()} == whole
    monkeypatch.setattr(share_states, name, defect)
    found = {key: state.batches for key, state in play(STORY, 1)[0].by_key.items()}
    assert found != whole, "a defect that changes nothing is none"


def test_a_wrong_lowest_offset_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(states: ShareStates) -> Generator[None, None, int | None]:
        yield
        return max((state.snapshot_offset for state in states.by_key.values()), default=None)

    monkeypatch.setattr(ShareStates, "lowest_offset", newest)
    with pytest.raises(AssertionError, match="pruned"):
        check(STORY, 100)


@settings(max_examples=50)
@given(st.lists(steps, max_size=25), st.integers(0, 4))
def test_snapshots_and_updates_come_to_the_same(story: list[Step], updates_max: int) -> None:
    """However many updates there are between two snapshots, the states are the same."""
    few, many = play(story, updates_max)[0], play(story, 1000)[0]
    assert {key: (state.start_offset, state.batches) for key, state in few.by_key.items()} == {
        key: (state.start_offset, state.batches) for key, state in many.by_key.items()
    }
