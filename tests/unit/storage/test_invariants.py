"""What the parts of a log assert of themselves: a defect of ours ends the process before it reaches the disk."""

from collections.abc import Callable
from typing import cast

import pytest

from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.protocol.uuids import ONE, ZERO
from kavka_broker.storage import checkpoints, partition_metadata, recovery
from kavka_broker.storage.cleaning import segment_swap
from kavka_broker.storage.disk import File
from kavka_broker.storage.durability import Durability
from kavka_broker.storage.file_names import CLEANED, DELETE_DIRECTORY, LOG, OFFSET_INDEX, PartitionName
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory, MetaProperties, write_meta_properties
from kavka_broker.storage.log_state import LogState
from kavka_broker.storage.offset_index import OffsetIndex
from kavka_broker.storage.producer_files import ProducerFiles
from kavka_broker.storage.retired_logs import Aside, SetAside
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segments import Segments
from tests.unit.storage.support import DIRECTORY, NOW_MS, append, fill, new_disk, open_log
from tests.unit.storage.test_log_manager import formatted, start


def beyond(log: Log) -> int:
    return log.log_end_offset + 1


def durability(log: Log) -> Durability:
    return Durability(
        log.disk,
        log.directory,
        log.state,
        log.segments,
        log.epoch_file,
        log.producer_files,
        recovery_point=beyond(log),
        is_secured=True,
    )


def cut_in_memory(log: Log) -> None:
    log.flush()
    log.truncation.plan_cut(1)
    log.truncation.carry_out()


def roll_closed(log: Log) -> None:
    log.close()
    log.roll(NOW_MS)


def misplaced(segments: Segments) -> Segments:
    segments.active = segments[0]
    return segments


def write_beyond_reach(log: Log) -> None:
    log.segments.active.offset_max = log.log_end_offset - 1
    vars(log)["roll"] = lambda *_: log.segments.active
    append(log)


class Deaf:
    """A file that takes nothing."""

    def __init__(self, file: File) -> None:
        self.path, self.size = file.path, file.size

    def append(self, piece: bytes) -> None:
        """Lose it."""


def write_nowhere(log: Log) -> None:
    active = log.segments.active
    active.file = cast(File, Deaf(active.file))
    active.append(bytes(70), log.log_end_offset, NOW_MS)


def half_opened(log: Log, *segments: Segment) -> recovery._Opening:
    disk = log.disk
    opening = recovery._Opening(disk, "/data/other-0", PartitionName("other", 0), log.config, NOW_MS, LeaderEpochs())
    opening.segments = list(segments)
    return opening


def measure_what_goes(log: Log) -> None:
    aside = SetAside(log.disk, bytes, lambda *_: None)
    [directory] = start(formatted()).directories
    aside._since(Aside(directory, "/data/a", "/data/b", DELETE_DIRECTORY, is_renamed=True), NOW_MS)


DEFECTS: dict[str, Callable[[Log], object]] = {
    "a log that begins behind its end": lambda log: LogState(log.name, 1, 0, has_begun=True),
    "a recovery point behind the end": durability,
    "segments out of order": lambda log: log.segments.replace(log.segments.all[::-1]),
    "no segment": lambda log: log.segments.replace([]),
    "a cut below the first segment": lambda log: log.segments.keep_below(-1),
    "a second segment of one offset": lambda log: log.segments.roll(log.segments.active_base, NOW_MS),
    "an active segment that is not the last": lambda log: misplaced(log.segments).roll(beyond(log), NOW_MS),
    "a cut that nobody has planned": lambda log: log.truncation.carry_out(),
    "a cut that the disk knows nothing of": cut_in_memory,
    "a cut that was not carried out": lambda log: log.durability.note_cut(),
    "another log's file": lambda log: log.durability.sync_later("/elsewhere/file"),
    "a change of names to come": lambda log: log.durability.note_secured(log.segments.name_changes + 1),
    "an epoch that goes back": lambda log: log.epoch_file.begin(log.epochs.begun, log.log_end_offset),
    "an epoch below the log": lambda log: log.epoch_file.begin(log.epochs.begun + 1, log.log_start_offset - 1),
    "epochs that begin behind the end": lambda log: log.epoch_file.truncate_from_start(beyond(log)),
    "a snapshot behind the end": lambda log: log.producer_files.write_snapshot(beyond(log), durable=False),
    "a closed log that rolls": roll_closed,
    "a segment below the end": lambda log: log.roll(NOW_MS, log.log_end_offset - 1),
    "a batch below the end": lambda log: log._write(memoryview(b""), 0, 3, 0, 0, NOW_MS, NOW_MS),
    "a batch without bytes": lambda log: log.segments.must_roll(0, 13, NOW_MS, NOW_MS),
    "a segment behind the active one": lambda log: log.segments.base_behind(log.segments.active),
    "snapshots out of order": lambda log: log.producer_files.snapshots.load(0, 13, lambda *_: True, [5, 3]),
    "epochs whose starts go back": lambda log: LeaderEpochs([(0, 5), (1, 3)]),
    "an epoch below 0": lambda log: checkpoints.write_epochs(log.disk, "/data/epochs", [(-1, 0)], durable=False),
    "a batch beyond a segment's reach": write_beyond_reach,
    "a reader that stopped at its first byte": lambda log: log.reader._remember(5, log.segments.active, 0),
    "a reader that stopped behind the end": lambda log: log.reader._remember(5, log.segments.active, 10**6),
    "a checkpoint below 0": lambda log: checkpoints.write_offsets(log.disk, "/data/ends", {log.name: -1}),
    "a directory without an id": lambda log: write_meta_properties(log.disk, "/data", MetaProperties("c", 1, ZERO)),
    "a directory of no node": lambda log: write_meta_properties(log.disk, "/data", MetaProperties("c", -1, ONE)),
    "a batch that the file has not taken": write_nowhere,
    "a segment that is not unborn": lambda log: log.segments._remove_unborn(log.segments.active_base - 1),
    "a cleaned file that counts at once": lambda log: segment_swap.rename_all(log.disk, DIRECTORY, 0, CLEANED, ""),
    "a log that goes first": lambda log: segment_swap._remove(log.disk, DIRECTORY, 0, LOG, OFFSET_INDEX),
    "a segment of another log": lambda log: recovery._drop(half_opened(log), log.segments[0]),
    "a segment in front of the start": lambda log: recovery._set_aside(half_opened(log, log.segments.active), 1),
    "a log that goes and is given a date": measure_what_goes,
    "a log of no topic": lambda log: partition_metadata.write(log.disk, DIRECTORY, ZERO),
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_found_where_it_is_made(what: str) -> None:
    log = open_log()
    fill(log, 12)
    append(log, epoch=3)
    assert len(log.segments) > 1
    with pytest.raises(AssertionError):
        DEFECTS[what](log)


def test_a_directory_of_another_broker_does_not_fail_here() -> None:
    manager, other = start(formatted()), start(formatted())
    with pytest.raises(AssertionError):
        manager.fail_directory(other.directories[0])


def test_a_directory_that_is_not_locked_is_not_written() -> None:
    with pytest.raises(AssertionError):
        LogDirectory(new_disk(), "/data", None, is_online=False).unmark_clean()


@pytest.mark.parametrize(("last_offset", "position"), [(6, 100), (5, 300), (4, 300), (-1, 300)])
def test_entries_of_an_index_ascend(last_offset: int, position: int) -> None:
    index = OffsetIndex(new_disk(), f"{DIRECTORY}.index", 0, 1024)
    index.append(5, 200)
    with pytest.raises(AssertionError):
        index.append(last_offset, position)


def test_epochs_are_written_in_their_order() -> None:
    with pytest.raises(AssertionError):
        checkpoints.write_epochs(new_disk(), "/data/epochs", [(2, 0), (1, 5)], durable=False)


def test_what_the_disk_says_of_an_index_is_no_defect() -> None:
    """Only what this process has made is held to ascend."""
    disk = new_disk()
    index = OffsetIndex(disk, f"{DIRECTORY}.index", 0, 1024)
    index.append(500, 9_000)
    index.spill()
    index = OffsetIndex(disk, f"{DIRECTORY}.index", 0, 1024)
    index.append(5, 200)
    assert len(index) == 2


@pytest.mark.parametrize("told", [-1, -(2**40)])
def test_what_a_checkpoint_says_is_no_defect(told: int) -> None:
    disk = new_disk()
    log = open_log(disk)
    fill(log, 12)
    log.close()
    disk.write_file(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n1\n0 %d\n" % told)
    again = open_log(disk, recover=False, recovery_point=told, log_start_offset=told)
    assert (again.log_start_offset, again.log_end_offset) == (0, 12)


def test_a_cut_is_sealed_by_whoever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread is at it while the log is closed."""
    log = open_log()
    fill(log, 12)
    log.flush()
    log.truncation.plan_cut(4)
    log.durability.lower_on_disk()
    log.truncation.carry_out()
    walked = ProducerFiles.walked

    def overtaken(files: ProducerFiles) -> ProducerStates:
        monkeypatch.setattr(ProducerFiles, "walked", walked)
        found = walked(files)
        log.durability.seal()
        return found

    monkeypatch.setattr(ProducerFiles, "walked", overtaken)
    log.durability.seal()
    assert not log.durability.is_being_cut


def test_epochs_can_be_taken_over() -> None:
    epochs = LeaderEpochs([(1, 0), (4, 7)])
    other = LeaderEpochs([(2, 3)])
    epochs.take_over(other)
    other.assign(5, 9)
    assert (list(epochs.entries), epochs.latest, epochs.begun) == ([(2, 3)], 2, 2)
