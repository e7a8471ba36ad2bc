"""A record is never with two members at once (H1), and every record is at last accepted, archived or available again.

Members fetch, acknowledge, leave and let their locks end; the share coordinator takes what is written, refuses it, or
answers late; the log loses its start and has gaps, markers and aborted transactions; another leader takes over with
what was written. A model beside it knows who was given which record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kavka_broker.core.share.share_partition import (
    Acknowledgement,
    Acquisition,
    LogBatch,
    ShareLimits,
    SharePartition,
)
from kavka_broker.core.share.share_window import Change, OffsetRun
from kavka_broker.core.share.state_batches import RecordState, StateBatch, combine
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError

LOCK_MS = 100
LIMITS = ShareLimits(records_max=12, deliveries_max=4, lock_ms=LOCK_MS)
MEMBERS = ("a", "b", "c")
LOG = [
    LogBatch(0, 2),
    LogBatch(3, 3, is_hidden=True),
    LogBatch(4, 8),
    LogBatch(11, 11),  # 9 and 10 were compacted away
    LogBatch(12, 14, is_hidden=True),
    LogBatch(15, 40),
]
END_OFFSET = 41
HIDDEN = {3, 9, 10, 12, 13, 14}


@dataclass
class World:
    """A share partition, its coordinator, and what the members believe."""

    window: SharePartition = field(default_factory=lambda: SharePartition(1, 0))
    written: list[StateBatch] = field(default_factory=list)
    start_offset: int = 0
    now_ms: float = 0
    held: dict[int, tuple[str, float]] = field(default_factory=dict)  # by offset: the member, and the end of its lock
    pending: list[tuple[Change, str, list[Acknowledgement]]] = field(default_factory=list)
    accepted: set[int] = field(default_factory=set)
    log_start: int = 0

    def fetch(self, member: str, records_max: int, is_strict: bool, batches_max: int) -> None:
        offset = self.window.next_fetch_offset
        there = [batch for batch in LOG if batch.last_offset >= max(offset, self.log_start)][:batches_max]
        wanted = Acquisition(member, records_max, LIMITS, self.now_ms, is_strict=is_strict)
        for part in self.window.acquire(wanted, offset, there):
            assert 1 <= part.delivery_count <= LIMITS.deliveries_max, part
            for one in range(part.first_offset, part.last_offset + 1):
                assert one not in HIDDEN, f"{one} is for nobody"
                assert one not in self.accepted, f"{one} was accepted"
                assert one not in self.held, f"{one} is with {self.held.get(one)} and with {member}"
                self.held[one] = member, self.now_ms + LOCK_MS
        if is_strict:
            taken = sum(run.size for run in wanted.runs)
            assert taken <= max(records_max, 0), "more than was asked for"
        assert sum(run.size for run in self.window.runs if not run.is_settled) <= LIMITS.records_max, "records locked"

    def begin(self, member: str, kinds: list[int]) -> None:
        """The member says something of some of its records."""
        mine = sorted(
            offset for offset, (holder, _) in self.held.items() if holder == member and offset not in self.said
        )
        said = [Acknowledgement(one, one, [kind]) for one, kind in zip(mine, kinds, strict=False)]
        try:
            change = at_once(self.window.begin(member, said, LIMITS, self.now_ms))
        except BrokerError:
            raise AssertionError(f"{member} holds {mine}") from None
        for one in said:
            if one.types[0] == 4:
                self.held[one.first_offset] = member, self.now_ms + LOCK_MS
        self.pending.append((change, member, said))

    @property
    def said(self) -> set[int]:
        """Offsets of which something is being written down."""
        return {offset for change, _, _ in self.pending for run in change.runs for offset in _of(run)}

    def steal(self, member: str) -> None:
        """A member says something of a record that is not its own."""
        others = [offset for offset, (holder, _) in self.held.items() if holder != member]
        for offset in others[:1]:
            with pytest.raises(BrokerError):
                at_once(self.window.begin(member, [Acknowledgement(offset, offset, [1])], LIMITS, self.now_ms))

    def end(self, is_written: bool) -> None:
        """The share coordinator answers the oldest write."""
        if not self.pending:
            return
        change, _, said = self.pending.pop(0)
        if not is_written:
            self.window.roll_back(change)
            return
        start_offset, _ = self.window.outcome_of([change])
        self._write(start_offset, change.batches)
        self.window.commit(change)
        for one in said:
            if one.types[0] != 4:
                self.held.pop(one.first_offset, None)
            if one.types[0] == 1:
                self.accepted.add(one.first_offset)
        assert self.start_offset <= self.window.start_offset

    def release(self, member: str) -> None:
        change = self.window.release(member, LIMITS)
        offsets = [offset for run in change.runs for offset in range(run.first, run.last + 1)]
        self.pending.append((change, member, [Acknowledgement(one, one, [2]) for one in offsets]))

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        expired = self.window.expire(self.now_ms, LIMITS)
        self._write(self.window.start_offset, expired)
        for batch in expired:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                assert self.held.pop(offset)[1] <= self.now_ms, f"the lock of {offset} has not ended"
        late = [one for one, (_, end) in self.held.items() if end <= self.now_ms and one not in self.said]
        assert not late, f"the locks of {late} have ended"

    def move_log_start(self, offset: int) -> None:
        self.log_start = max(self.log_start, offset)
        self.window.move_log_start(self.log_start)

    def fail_over(self) -> None:
        """Another leader takes over what was written; members have to be given their records again."""
        self.pending, self.held = [], {}
        self.window = SharePartition(1, self.start_offset, self.written)
        self.window.move_log_start(self.log_start)

    def _write(self, start_offset: int, batches: list[StateBatch]) -> None:
        self.start_offset = max(self.start_offset, start_offset)
        self.written = combine([*self.written, *batches], self.start_offset)

    def check(self) -> None:
        runs = self.window.runs
        edges = [self.window.start_offset, *(run.last + 1 for run in runs)]
        assert edges == [*(run.first for run in runs), self.window.end_offset], "the runs tile the window"
        locked = {one: run.member for run in runs if run.state is RecordState.ACQUIRED for one in _of(run)}
        assert locked == {one: member for one, (member, _) in self.held.items()}, "who holds what"

    def drain(self) -> None:
        """Every member accepts what it gets from now on: at the end nothing is left."""
        while self.pending:
            self.end(True)
        self.pass_time(LOCK_MS + 1)
        for _ in range(200):
            if self.window.start_offset == END_OFFSET:
                break
            self.fetch("a", 5, False, 2)
            self.begin("a", [1] * END_OFFSET)
            self.end(True)
            self.check()
        assert self.window.start_offset == END_OFFSET, self.window.runs
        assert not self.held


def _of(run: OffsetRun) -> range:
    return range(run.first, run.last + 1)


Step = Callable[[World], None]
members = st.sampled_from(MEMBERS)
steps = st.one_of(
    st.builds(
        lambda *args: lambda world: world.fetch(*args), members, st.integers(0, 9), st.booleans(), st.integers(1, 6)
    ),
    st.builds(
        lambda member, kinds: lambda world: world.begin(member, kinds),
        members,
        st.lists(st.integers(0, 4), min_size=1, max_size=6),
    ),
    st.builds(lambda is_written: lambda world: world.end(is_written), st.booleans()),
    st.builds(lambda ms: lambda world: world.pass_time(ms), st.integers(1, LOCK_MS)),
    st.builds(lambda member: lambda world: world.release(member), members),
    st.builds(lambda member: lambda world: world.steal(member), members),
    st.builds(lambda offset: lambda world: world.move_log_start(offset), st.integers(0, END_OFFSET - 1)),
    st.just(World.fail_over),
)


def play(story: list[Step]) -> None:
    world = World()
    for step in story:
        step(world)
        world.check()
    world.drain()


@settings(max_examples=150)
@given(st.lists(steps, max_size=30))
def test_a_record_is_with_one_member_and_ends(story: list[Step]) -> None:
    play(story)


def free_while_written(run: OffsetRun) -> bool:
    return run.state is RecordState.AVAILABLE or run.pending is RecordState.AVAILABLE


def locked_while_written(run: OffsetRun) -> bool:
    return run.state is RecordState.ACQUIRED


def part_without_change(run: OffsetRun, first: int, last: int) -> OffsetRun:
    return OffsetRun(first, last, run.state, run.count, run.member, run.deadline_ms, run.pending)


def nothing_is_hidden(window: SharePartition, first: int, last: int) -> None:
    window._extend_into(last, LIMITS)


def acquired_by_anybody(
    window: SharePartition, run: OffsetRun, member: str, kind: int, change: Change, limits: ShareLimits, now_ms: float
) -> None:
    ORIGINAL_MARK(window, run, run.member, kind, change, limits, now_ms)


def never_rolled_back(window: SharePartition, change: Change) -> None:
    """A change that could not be written stays where it is."""


def counted_as_written(window: SharePartition, change: Change) -> None:
    window.commit(change)


def start_beyond_the_window(window: SharePartition, changes: Sequence[Change]) -> tuple[int, int]:
    return window.end_offset, 0


ORIGINAL_MARK = SharePartition._mark
DEFECTS: list[tuple[type, str, object]] = [
    (OffsetRun, "is_free", property(free_while_written)),
    (OffsetRun, "is_locked", property(locked_while_written)),
    (OffsetRun, "part", part_without_change),
    (SharePartition, "_archive", nothing_is_hidden),
    (SharePartition, "_mark", acquired_by_anybody),
    (SharePartition, "roll_back", never_rolled_back),
    (SharePartition, "roll_back", counted_as_written),
    (SharePartition, "outcome_of", start_beyond_the_window),
]


@pytest.mark.parametrize(("owner", "name", "defect"), DEFECTS)
def test_defects_are_found(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, defect: object) -> None:
    monkeypatch.setattr(owner, name, defect)

    @settings(max_examples=2000, derandomize=True, database=None, phases=[Phase.generate], report_multiple_bugs=False)
    @given(st.lists(steps, min_size=6, max_size=30))
    def look(story: list[Step]) -> None:
        play(story)

    with pytest.raises((AssertionError, IndexError, pytest.fail.Exception)):
        look()
