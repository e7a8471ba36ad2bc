"""A cleaning of a log: the last value of each key stays where it is, and everything else goes."""

from dataclasses import replace
from typing import Any

import pytest

from kavka_broker.protocol.records.control import ControlType
from kavka_broker.protocol.records.record import Record
from kavka_broker.storage.cleaning.run import Bounds, Replacement, Uncleanable
from kavka_broker.storage.cleaning.segment_swap import put_in_place
from kavka_broker.storage.file_names import CLEANED, SWAP
from kavka_broker.storage.log import Log
from tests.unit.storage.cleaning import COMPACTED, DAY_MS, begin, clean, disk_of, end, put, range_of, roll
from tests.unit.storage.support import DIRECTORY, NOW_MS, everything, headers, open_log

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def compacted(**changes: Any) -> Log:
    return open_log(config=replace(COMPACTED, **changes))


def seen(log: Log) -> list[tuple[int, str, str | None]]:
    """Offsets, keys and values, as a reader of everything sees them; markers left out."""
    control = {header.base_offset for header in headers(log) if header.is_control}
    return [text(one) for one in everything(log) if one.offset not in control]


def text(one: Record) -> tuple[int, str, str | None]:
    assert one.key is not None
    return one.offset, one.key.decode(), None if one.value is None else one.value.decode()


def test_the_last_value_of_each_key_stays_at_its_offset() -> None:
    log = compacted()
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", "2"))
    put(log, ("c", "1"), ("a", "3"))
    roll(log)
    put(log, ("b", "2"))
    cleaning = clean(log)
    assert seen(log) == [(1, "b", "1"), (3, "c", "1"), (4, "a", "3"), (5, "b", "2")]
    assert (log.log_end_offset, log.state.cleaned_offset) == (6, 5)
    assert (cleaning.figures.records_read, cleaning.figures.records_kept) == (5, 3)
    roll(log)
    clean(log)
    assert seen(log) == [(3, "c", "1"), (4, "a", "3"), (5, "b", "2")]


def test_a_batch_keeps_its_offsets_and_its_time() -> None:
    log = compacted()
    put(log, ("a", "1"), ("b", "1"), ("c", "1"), timestamp_ms=NOW_MS - 5)
    put(log, ("a", "2"), ("c", "2"))
    roll(log)
    clean(log)
    first = headers(log)[0]
    assert (first.base_offset, first.last_offset, first.records_count, first.max_timestamp) == (0, 2, 1, NOW_MS - 5)


def test_small_segments_become_one_and_a_log_opens_again_as_it_was() -> None:
    log = compacted()
    for turn in range(6):
        put(log, ("a", f"{turn}"), (f"k{turn}", "v"))
        roll(log)
    before = log.log_end_offset
    clean(log)
    expected = [
        (1, "k0", "v"),
        (3, "k1", "v"),
        (5, "k2", "v"),
        (7, "k3", "v"),
        (9, "k4", "v"),
        (10, "a", "5"),
        (11, "k5", "v"),
    ]
    assert seen(log) == expected
    assert [segment.base_offset for segment in log.segments] == [0, 12]
    log.close()
    opened = open_log(disk_of(log), COMPACTED, recover=False, recovery_point=before)
    assert (seen(opened), opened.damage, opened.log_end_offset) == (expected, "", before)
    opened.close()
    plain = open_log(disk_of(log), open_log().config, recover=False, recovery_point=before)
    assert plain.damage == "", "a topic that is not compacted any more"


def test_a_tombstone_stays_until_its_horizon() -> None:
    log = compacted(delete_retention_ms=DAY_MS)
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None))
    roll(log)
    clean(log)
    assert seen(log) == [(1, "b", "1"), (2, "a", None)]
    marked = headers(log)[-1]
    assert (marked.has_delete_horizon, marked.base_timestamp) == (True, NOW_MS + DAY_MS)
    assert everything(log)[-1].timestamp == NOW_MS
    put(log, ("c", "1"))
    roll(log)
    clean(log, now_ms=NOW_MS + DAY_MS - 1)
    assert (2, "a", None) in seen(log)
    put(log, ("d", "1"))
    roll(log)
    clean(log, now_ms=NOW_MS + DAY_MS)
    assert seen(log) == [(1, "b", "1"), (3, "c", "1"), (4, "d", "1")]


def test_an_old_value_goes_before_the_tombstone_that_replaces_it() -> None:
    log = compacted(delete_retention_ms=0)
    put(log, ("a", "1"), ("b", "x" * 900))
    roll(log)
    put(log, ("a", None), ("c", "x" * 900))
    roll(log)
    replaced = []
    for step in begin(log).work():
        if isinstance(step, Replacement):
            assert put_in_place(log, step.old, step.cleaned)
            replaced.append(step.cleaned.base_offset)
            assert (0, "a", "1") not in seen(log)
    assert replaced == [0, 2]


def test_what_was_aborted_goes_and_its_marker_a_run_later_and_a_horizon() -> None:
    log = compacted(delete_retention_ms=10)
    put(log, ("a", "old"))
    put(log, ("a", "aborted"), ("b", "aborted"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, 7, ABORT)
    put(log, ("c", "committed"), producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, 8, COMMIT)
    log.producers.transactions.replicated(log.log_end_offset)
    put(log, ("x", "1"), producer_id=7, producer_epoch=0, base_sequence=2)
    put(log, ("y", "1"), producer_id=8, producer_epoch=0, base_sequence=1)
    roll(log)
    clean(log)
    assert seen(log) == [(0, "a", "old"), (4, "c", "committed"), (6, "x", "1"), (7, "y", "1")]
    assert [one.last_offset for one in log.reader.aborted_between(0, 8)] == [3]
    assert sum(header.is_control for header in headers(log)) == 2
    for now_ms, markers in ((NOW_MS, 2), (NOW_MS + 10, 1)):
        put(log, ("z", "1"))
        roll(log)
        clean(log, now_ms=now_ms)
        assert sum(header.is_control for header in headers(log)) == markers
        assert log.reader.aborted_between(0, 8) == []
    assert (4, "c", "committed") in seen(log)


def test_the_last_batch_of_a_producer_stays_for_its_sequence() -> None:
    log = compacted()
    put(log, ("a", "1"), ("a", "2"), producer_id=7, producer_epoch=3, base_sequence=40)
    put(log, ("a", "3"))
    roll(log)
    clean(log)
    assert [(header.producer_id, header.records_count) for header in headers(log)] == [(7, 0), (-1, 1)]
    for snapshot in [name for name in log.disk.names(DIRECTORY) if name.endswith(".snapshot")]:
        log.disk.remove(f"{DIRECTORY}/{snapshot}")
    opened = open_log(disk_of(log), COMPACTED, recover=True, recovery_point=log.recovery_point)
    known = opened.producers.get(7)
    assert known is not None
    assert (known.epoch, known.last_sequence) == (3, 41)


def test_the_last_batch_of_the_log_stays() -> None:
    log = compacted(delete_retention_ms=0)
    put(log, ("a", "1"))
    put(log, ("a", None))
    roll(log)
    clean(log)
    put(log, ("b", None))
    roll(log)
    clean(log, now_ms=NOW_MS + 1)
    put(log, ("c", None))
    roll(log)
    clean(log, now_ms=NOW_MS + 2)
    assert seen(log) == [(3, "c", None)]
    log.disk.remove(log.segments[-1].file.path)
    assert open_log(disk_of(log), COMPACTED, recovery_point=0).log_end_offset == 4


def test_the_last_batch_of_a_segment_stays_without_records() -> None:
    log = compacted()
    put(log, ("a", "x" * 900))
    roll(log)
    put(log, ("a", "y" * 900))
    roll(log)
    put(log, ("a", "z" * 900))
    clean(log)
    found = [(header.last_offset, header.records_count, header.base_timestamp) for header in headers(log)]
    assert found == [(0, 0, -1), (1, 1, NOW_MS), (2, 1, NOW_MS)]
    assert headers(log)[0].max_timestamp == NOW_MS


def test_a_map_that_is_full_ends_the_dirty_part_there() -> None:
    log = compacted()
    put(log, *((f"k{index}", "1") for index in range(30)))
    put(log, *((f"k{index}", "2") for index in range(30)))
    roll(log)
    small = Bounds(buffer_bytes_max=24 * 12, load_factor=0.9)
    runs = 0
    while log.state.cleaned_offset < 60:
        before = log.state.cleaned_offset
        clean(log, bounds=small)
        runs += 1
        assert log.state.cleaned_offset > before
        assert {key for _, key, _ in seen(log)} == {f"k{index}" for index in range(30)}
    assert runs > 3
    assert seen(log) == [(30 + index, f"k{index}", "2") for index in range(30)]


def test_nothing_behind_the_first_uncleanable_offset_is_touched() -> None:
    log = compacted()
    put(log, ("a", "1"))
    roll(log)
    put(log, ("a", "2"))
    roll(log)
    put(log, ("a", "3"))
    assert range_of(log, stable_offset=1).first_uncleanable_offset == 1
    clean(log, stable_offset=1)
    assert seen(log) == [(0, "a", "1"), (1, "a", "2"), (2, "a", "3")]
    assert range_of(log).first_uncleanable_offset == 2


def test_a_batch_that_is_not_sound_ends_it_and_nothing_has_changed() -> None:
    log = compacted()
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log)
    disk_of(log).peek(DIRECTORY)["00000000000000000000.log"].data[-1] ^= 1
    before = log.disk.names(DIRECTORY)
    with pytest.raises(Uncleanable, match="wrong CRC"):
        clean(log)
    assert log.disk.names(DIRECTORY) == before


def test_a_log_that_was_cut_meanwhile_is_left_alone() -> None:
    log = compacted()
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log)
    cleaning = begin(log)
    work = cleaning.work()
    step = next(one for one in work if isinstance(one, Replacement))
    log.truncate_to(1)
    assert cleaning.is_outdated
    assert not put_in_place(log, step.old, step.cleaned)
    work.close()
    assert not [name for name in log.disk.names(DIRECTORY) if name.endswith((CLEANED, SWAP))]
    assert seen(log) == [(0, "a", "1")]


def test_a_reader_of_the_old_segment_goes_on() -> None:
    log = compacted()
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log)
    held = log.read(0, 10_000).parts[0]
    copy = bytes(held)
    clean(log)
    assert bytes(held) == copy
    assert log.read(0, 10_000).end_offset == log.read(1, 10_000).end_offset == 2
