"""The records that a share partition has in flight, step by step."""

from collections.abc import Sequence

import pytest

from kavka_broker.core.share.share_partition import (
    Acknowledgement,
    Acquired,
    Acquisition,
    LogBatch,
    ShareLimits,
    SharePartition,
)
from kavka_broker.core.share.share_window import Change, ShareWindow
from kavka_broker.core.share.state_batches import StateBatch
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode

LIMITS = ShareLimits(records_max=2000, deliveries_max=5, lock_ms=100)


def acquire(
    window: SharePartition,
    batches: Sequence[LogBatch],
    records_max: int = 500,
    *,
    member: str = "a",
    now_ms: float = 0,
    limits: ShareLimits = LIMITS,
    is_strict: bool = False,
) -> list[Acquired]:
    wanted = Acquisition(member, records_max, limits, now_ms, is_strict=is_strict)
    return window.acquire(wanted, window.next_fetch_offset, batches)


def say(window: SharePartition, first: int, last: int, *types: int, member: str = "a", now_ms: float = 0) -> Change:
    return at_once(window.begin(member, [Acknowledgement(first, last, types)], LIMITS, now_ms))


def runs_of(window: SharePartition) -> list[tuple[int, int, str, int]]:
    return [(run.first, run.last, run.state.name, run.count) for run in window.runs]


def test_whole_batches_are_acquired_until_there_are_enough() -> None:
    window = SharePartition(1, 0)
    assert acquire(window, [LogBatch(0, 9), LogBatch(10, 19), LogBatch(20, 29)], 15) == [
        Acquired(0, 9, 1),
        Acquired(10, 19, 1),
    ]
    assert acquire(window, [LogBatch(20, 29)], 15, member="b") == [Acquired(20, 29, 1)]


def test_strictly_no_record_more() -> None:
    window = SharePartition(1, 0)
    assert acquire(window, [LogBatch(0, 9), LogBatch(10, 19)], 15, is_strict=True) == [
        Acquired(0, 9, 1),
        Acquired(10, 14, 1),
    ]
    assert acquire(window, [LogBatch(10, 19)], 15, is_strict=True) == [Acquired(15, 19, 1)]


def test_a_batch_is_divided_where_too_many_would_be_in_flight() -> None:
    window, limits = SharePartition(1, 0), LIMITS._replace(records_max=100)
    assert acquire(window, [LogBatch(0, 999)], limits=limits) == [Acquired(0, 99, 1)]
    assert acquire(window, [LogBatch(0, 999)], limits=limits) == []
    assert not window.may_acquire(limits)
    window.commit(say(window, 0, 49, 1))
    assert acquire(window, [LogBatch(0, 999)], limits=limits) == [Acquired(100, 149, 1)]


def test_each_record_may_be_acknowledged_by_itself() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    change = say(window, 0, 4, 1, 2, 3, 1, 0)
    assert change.batches == [
        StateBatch(0, 0, 2, 1),
        StateBatch(1, 1, 0, 1),
        StateBatch(2, 2, 4, 1),
        StateBatch(3, 3, 2, 1),
        StateBatch(4, 4, 4, 1),
    ]
    assert window.outcome_of([change]) == (1, 3)
    assert window.commit(change), "record 1 is available"
    assert window.start_offset == 1
    assert runs_of(window) == [
        (1, 1, "AVAILABLE", 1),
        (2, 2, "ARCHIVED", 1),
        (3, 3, "ACKNOWLEDGED", 1),
        (4, 4, "ARCHIVED", 1),
        (5, 9, "ACQUIRED", 1),
    ]
    assert acquire(window, [LogBatch(0, 9)], member="b") == [Acquired(1, 1, 2)]


@pytest.mark.parametrize(
    ("first", "last", "types", "member", "code"),
    [
        (0, 4, (1,), "b", ErrorCode.INVALID_RECORD_STATE),
        (5, 9, (1,), "a", ErrorCode.INVALID_RECORD_STATE),  # released before
        (0, 20, (1,), "a", ErrorCode.INVALID_REQUEST),
        (20, 20, (1,), "a", ErrorCode.INVALID_REQUEST),
        (0, 4, (1, 1), "a", ErrorCode.INVALID_REQUEST),
        (0, 4, (), "a", ErrorCode.INVALID_REQUEST),
        (4, 0, (1,), "a", ErrorCode.INVALID_REQUEST),
        (0, 4, (5,), "a", ErrorCode.INVALID_REQUEST),
        (0, 4, (-1,), "a", ErrorCode.INVALID_REQUEST),
        (-1, 4, (1,), "a", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused_changes_nothing(
    first: int, last: int, types: tuple[int, ...], member: str, code: ErrorCode
) -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    window.commit(say(window, 5, 9, 2))
    before = runs_of(window)
    said = [Acknowledgement(0, 0, [1]), Acknowledgement(first, last, types)][first == 0 :]
    with pytest.raises(BrokerError) as refused:
        at_once(window.begin(member, said, LIMITS, 0))
    assert refused.value.code is code
    assert runs_of(window) == before
    assert not any(run.pending for run in window.runs)


def test_offsets_that_were_left_behind_are_ignored() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    window.commit(say(window, 0, 4, 1))
    assert say(window, 0, 4, 1).runs == []
    window.commit(say(window, 3, 9, 1))
    assert window.start_offset == 10


def test_types_of_offsets_that_were_left_behind_are_not_looked_at() -> None:
    window = SharePartition(1, 1_000_000)
    acquire(window, [LogBatch(1_000_000, 1_000_001)])
    types = [1] * 1_000_000 + [2, 3]
    change = at_once(window.begin("a", [Acknowledgement(0, 1_000_001, types)], LIMITS, 0))
    assert change.batches == [StateBatch(1_000_000, 1_000_000, 0, 1), StateBatch(1_000_001, 1_000_001, 4, 1)]
    steps = sum(1 for _ in window.begin("a", [Acknowledgement(0, 999_999, types[:1_000_000])] * 3, LIMITS, 0))
    assert steps == 3, "each is a step of its own"


def test_while_a_change_is_written_nothing_else_happens_to_its_records() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    change = say(window, 0, 9, 2)
    assert window.expire(1000, LIMITS) == []
    assert acquire(window, [LogBatch(0, 9)], member="b") == []
    assert not window.is_idle
    window.roll_back(change)
    assert runs_of(window) == [(0, 9, "ACQUIRED", 1)]
    assert window.expire(1000, LIMITS) == [StateBatch(0, 9, 0, 1)], "the lock went on"


def test_a_change_that_is_cut_by_the_log_start_is_one_change() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    change = say(window, 0, 9, 1)
    window.move_log_start(5)
    window.roll_back(change)
    assert not any(run.pending for run in window.runs)
    window.commit(say(window, 0, 9, 1))
    assert (window.start_offset, runs_of(window)) == (10, [])


def test_a_lock_ends_and_may_be_renewed() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    assert window.next_deadline_ms == 100
    assert say(window, 0, 4, 4, now_ms=60).batches == [], "nothing is written down of a renewal"
    assert window.expire(100, LIMITS) == [StateBatch(5, 9, 0, 1)]
    assert window.next_deadline_ms == 160
    assert window.expire(160, LIMITS) == [StateBatch(0, 4, 0, 1)]


def test_what_comes_back_too_often_is_archived() -> None:
    window = SharePartition(1, 0)
    for delivery in range(1, 6):
        assert acquire(window, [LogBatch(0, 0)]) == [Acquired(0, 0, delivery)]
        window.commit(say(window, 0, 0, 2))
    assert window.start_offset == 1
    assert acquire(window, [LogBatch(0, 0)]) == []


@pytest.mark.parametrize("how", ["released", "expired", "under way"])
def test_what_comes_back_of_records_that_the_log_has_lost_is_archived(how: str) -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    change = window.release("a", LIMITS) if how == "under way" else None
    window.move_log_start(5)
    assert window.start_offset == 0, "the member may still accept them"
    if how == "expired":
        assert window.expire(100, LIMITS) == [StateBatch(0, 4, 4, 1), StateBatch(5, 9, 0, 1)]
    else:
        window.commit(change or window.release("a", LIMITS))
    assert (window.start_offset, window.next_fetch_offset) == (5, 5), "a fetch never asks the log for what it has lost"
    assert acquire(window, [LogBatch(0, 9)], member="b") == [Acquired(5, 9, 2)]


def test_many_changes_are_taken_over_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 99)])
    changes = [say(window, offset, offset, 1 + offset % 2) for offset in range(100)]
    passes = 0
    join = ShareWindow.join

    def counted(runs: ShareWindow) -> None:
        nonlocal passes
        passes += 1
        join(runs)

    monkeypatch.setattr(ShareWindow, "join", counted)
    assert window.outcome_of(changes) == (1, 49)
    window.commit(*changes)
    assert passes == 1
    assert len(window.runs) == 99


def test_a_long_range_is_marked_in_steps() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 1999)], 2000)
    assert sum(1 for _ in window.begin("a", [Acknowledgement(0, 1999, [1])], LIMITS, 0)) > 4


def test_locks_are_renewed_only_where_that_is_allowed() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    with pytest.raises(BrokerError) as refused:
        at_once(window.begin("a", [Acknowledgement(0, 9, [4])], LIMITS, 0, may_renew=False))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_the_log_start_archives_what_nobody_holds() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 3)])
    acquire(window, [LogBatch(4, 9)], member="b")
    window.commit(say(window, 4, 9, 2, member="b"))
    assert not window.move_log_start(8)
    assert runs_of(window) == [(0, 3, "ACQUIRED", 1), (4, 7, "ARCHIVED", 1), (8, 9, "AVAILABLE", 1)]
    assert window.expire(100, LIMITS) == [StateBatch(0, 3, 4, 1)], "the log has lost them"
    assert window.start_offset == 8
    assert window.move_log_start(50)
    assert (window.start_offset, window.end_offset) == (50, 50)


def test_holes_of_a_state_are_acquired_and_those_of_the_log_archived() -> None:
    state = [StateBatch(10, 14, 2, 1), StateBatch(20, 24, 0, 2)]
    window = SharePartition(1, 5, state)
    assert runs_of(window) == [
        (5, 9, "AVAILABLE", 0),
        (10, 14, "ACKNOWLEDGED", 1),
        (15, 19, "AVAILABLE", 0),
        (20, 24, "AVAILABLE", 2),
    ]
    assert acquire(window, [LogBatch(7, 16), LogBatch(18, 30)]) == [
        Acquired(7, 9, 1),
        Acquired(15, 16, 1),
        Acquired(18, 19, 1),
        Acquired(20, 24, 3),
        Acquired(25, 30, 1),
    ]
    assert window.start_offset == 7
    assert runs_of(window)[3] == (17, 17, "ARCHIVED", 0)


def test_what_a_lost_log_end_had_is_forgotten() -> None:
    window = SharePartition(1, 5, [StateBatch(10, 14, 2, 1)])
    window.clip(12)
    assert (window.start_offset, window.end_offset) == (5, 12)
    window.clip(3)
    assert (window.start_offset, window.end_offset, window.runs) == (3, 3, [])


def test_one_poison_record_takes_no_other_with_it() -> None:
    """A member that dies of record 250 accepts the others of what it was given with it: none."""
    window = SharePartition(1, 0)
    accepted: set[int] = set()
    sizes = []
    for now_ms in range(0, 100_000, 100):
        window.expire(now_ms, LIMITS)
        parts = acquire(window, [LogBatch(0, 499)], now_ms=now_ms)
        if window.start_offset == 500:
            break
        offsets = [one for part in parts for one in range(part.first_offset, part.last_offset + 1)]
        sizes.append(len(offsets))
        if 250 not in offsets:
            for part in parts:
                window.commit(say(window, part.first_offset, part.last_offset, 1, now_ms=now_ms))
            accepted.update(offsets)
    assert accepted == set(range(500)) - {250}
    assert sizes[:4] == [500, 500, 500, 250], "from half of the deliveries on in smaller parts"
    assert sizes.count(1) >= 1


def test_a_range_of_very_many_types_is_refused_before_it_is_looked_at() -> None:
    """A gap of the log makes a window as long as it likes, and a request could name each offset of it."""
    window = SharePartition(1, 0, [StateBatch(0, 0, 0, 1), StateBatch(1, 20_000, 2, 1)])
    acquire(window, [LogBatch(0, 0)])
    with pytest.raises(BrokerError) as refused:
        say(window, 0, 20_000, *[1] * 20_001)
    assert "At most 10000 types" in str(refused.value)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_a_window_from_before_the_log_begins_with_the_log() -> None:
    for start_offset in (-5, 0, 3):
        window = SharePartition(1, start_offset)
        window.move_log_start(0)
        window.move_log_start(3)
        assert (window.start_offset, window.next_fetch_offset) == (3, 3)


def test_records_that_were_delivered_often_come_in_halves() -> None:
    window, limits = SharePartition(1, 0), LIMITS._replace(deliveries_max=10)
    sizes = []
    for now_ms in range(0, 1100, 100):
        window.expire(now_ms, limits)
        parts = acquire(window, [LogBatch(0, 499)], now_ms=now_ms, limits=limits)
        sizes.append(sum(part.last_offset - part.first_offset + 1 for part in parts))
    assert sizes[:10] == [500, 500, 500, 500, 500, 250, 125, 62, 31, 1], "as in Apache Kafka (KAFKA-19903)"


def delivered(count: int, batches: Sequence[LogBatch], limits: ShareLimits) -> list[tuple[int, int]]:
    """The ranges of so many deliveries, each of which is released."""
    window, ranges = SharePartition(1, 0), []
    for now_ms in range(0, 100 * count, 100):
        window.expire(now_ms, limits)
        first = window.next_fetch_offset
        parts = acquire(window, [one for one in batches if one.last_offset >= first], 512, now_ms=now_ms, limits=limits)
        ranges.append((parts[0].first_offset, parts[-1].last_offset + 1))
    return ranges


@pytest.mark.parametrize("batch_size", [512, 200, 8])
def test_later_parts_of_a_batch_are_as_large_as_its_first(batch_size: int) -> None:
    """As ShareConsumerTest.testFetchWithThrottledDeliveryBatchesWithIncreasedDeliveryLimit of Apache Kafka has it: what
    counts is the size of the whole when it began to be throttled, whatever batches of the log it is in.
    """
    batches = [LogBatch(at, min(at + batch_size, 512) - 1) for at in range(0, 512, batch_size)]
    alone = {start: [(offset, offset + 1) for offset in range(start, start + 32)] for start in range(0, 512, 32)}
    expected = [
        *[(0, 512)] * 5, (0, 256), (0, 128), (0, 64), (0, 32), *alone[0],
        (32, 64), *alone[32],
        (64, 128), (64, 96), *alone[64], (96, 128), *alone[96],
        (128, 256), (128, 192), (128, 160), *alone[128], (160, 192), *alone[160],
        (192, 256), (192, 224), *alone[192], (224, 256), *alone[224],
        (256, 512), (256, 384), (256, 320), (256, 288), *alone[256],
    ]  # fmt: skip
    assert delivered(len(expected), batches, LIMITS._replace(deliveries_max=10)) == expected


def test_a_raised_limit_of_deliveries_lets_throttled_records_go_together() -> None:
    window = SharePartition(1, 0, [StateBatch(0, 99, 0, 3)])
    assert acquire(window, [LogBatch(0, 99)]) == [Acquired(0, 49, 4)]
    window.expire(1000, LIMITS)
    assert acquire(window, [LogBatch(0, 99)], limits=LIMITS._replace(deliveries_max=20)) == [
        Acquired(0, 49, 5),
        Acquired(50, 99, 4),
    ]


def test_a_session_that_ends_while_its_word_is_taken_holds_nothing() -> None:
    window = SharePartition(1, 0)
    acquire(window, [LogBatch(0, 9)])
    taking = window.begin("a", [Acknowledgement(0, 9, [1, 2] * 5)], LIMITS, 0)
    for _ in range(4):
        next(taking)
    window.commit(window.release("a", LIMITS))
    taking.close()  # the request has gone with its connection
    assert window.expire(0, LIMITS), "what it had begun to speak of"
    assert [run.state.name for run in window.runs] == ["AVAILABLE"]
