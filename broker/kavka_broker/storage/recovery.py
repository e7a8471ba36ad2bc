"""Opening a log: find its segments, and after a crash find out which bytes to believe.

After a clean stop everything is as it was left, or the disk has changed it. The log's last stretch, which is read in
any case, is checked, and has to end where the recovery point says. After any other stop what lies behind the recovery
point may be torn, missing, or zeros. Those segments are read batch by batch: length, magic, CRC, ascending offsets. At
the first batch that does not hold, the log is cut, and later segments go. Indexes, leader epochs and the producers'
state are derived from batches, so they are built again for what was checked.

Segments below the recovery point keep their indexes if these look sane, else they are rebuilt from the log.

What was synced once and does not hold any more is damage, and nothing of it is cut off or removed: the log keeps its
end, batches behind the damage count, and the log says that it is damaged (`damage`). Whoever has other replicas takes
it from them; who has none keeps all that can still be read.
"""

import os
from dataclasses import dataclass, field
from itertools import count, pairwise

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.logs import get
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage import partition_metadata
from kavka_broker.storage.batch_walk import ANY_OFFSET, OtherEpoch, end_at
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.epoch_check import are_confirmed, corrected, epochs_in, with_former
from kavka_broker.storage.epoch_file import read_epochs
from kavka_broker.storage.file_names import (
    LEADER_EPOCHS,
    SNAPSHOT,
    STRAY_DIRECTORY,
    PartitionName,
    aside_directory,
    parse_future,
    parse_partition,
)
from kavka_broker.storage.found_files import clean_up, drop_lone, has_foreign, note_foreign, offset_files
from kavka_broker.storage.log import Log
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segment_fingerprint import contradicts, is_shifted
from kavka_broker.storage.time_index_check import denies
from kavka_broker.storage.transaction_index import Trust

log = get("storage")


@dataclass(slots=True)
class _Opening:
    """What is known about a log while it is opened."""

    disk: Disk
    directory: str
    name: PartitionName
    config: LogConfig
    now_ms: int
    epochs: LeaderEpochs
    segments: list[Segment] = field(default_factory=list)
    end_offset: int = 0
    is_cut: bool = False
    are_epochs_known: bool = True
    topic_id: bytes = ZERO
    damage: str = ""
    is_foreign: bool = False
    has_gaps: bool = False  # a cleaning leaves them, rightly
    snapshot_offsets: list[int] = field(default_factory=list)
    cleaned_offset: int = 0

    @property
    def snapshots(self) -> ProducerSnapshots:
        return ProducerSnapshots(self.disk, self.directory, self.topic_id, self.name.partition)


def open_log(
    disk: Disk,
    directory: str,
    config: LogConfig,
    *,
    recover: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int,
    keeps_end: bool = True,
    cleaned_offset: int = 0,
    topic_id: bytes | None = None,
) -> Log:
    """The log in `directory`, made where there is none; with `recover` what a crash may have torn is checked. Unless it
    `keeps_end`, it may end below the recovery point, and gives out those offsets again. Below `cleaned_offset` it has
    been cleaned, whatever its topic says now. `topic_id` is that of `partition.metadata`, where it has been read.

    A broker may start with very many logs: the directory is listed once, and no file is asked for that is not in it.
    Raises ValueError where the directory has not the name of a log.
    """
    base = os.path.basename(directory)
    name = parse_partition(base) or parse_future(base)
    if name is None:
        raise ValueError(f"{directory} is not the name of a log: <topic>-<partition>")
    # A checkpoint may say anything.
    recovery_point, log_start_offset = max(recovery_point, 0), max(log_start_offset, 0)
    names = clean_up(disk, directory)
    files, was_foreign = offset_files(names), has_foreign(names)
    recover = recover and not was_foreign  # nothing has written to it since
    bases, lost = drop_lone(disk, directory, files)
    epochs, are_epochs_known = read_epochs(disk, directory) if LEADER_EPOCHS in names else (LeaderEpochs(), False)
    opening = _Opening(disk, directory, name, config, now_ms, epochs, are_epochs_known=are_epochs_known)
    opening.topic_id = partition_metadata.read(disk, directory) if topic_id is None else topic_id
    opening.snapshot_offsets = [offset for offset, suffix in files if suffix == SNAPSHOT]
    opening.has_gaps, opening.cleaned_offset = cleaned_offset > 0 or config.compacts, cleaned_offset
    if not recover:
        log_start_offset = _believable_start(opening, log_start_offset, recovery_point)
        missed = _missed_segment(opening, bases, lost, log_start_offset, recovery_point)
    else:
        missed = _missed_first_segment(bases, lost, log_start_offset, recovery_point) if keeps_end else None
    if missed is not None:
        _stand_in(opening, bases, missed)
    # A clean stop has synced the log, and the recovery point is where it ended.
    _open_segments(opening, bases, recovery_point, is_clean=not recover)
    synced_offset = recovery_point if keeps_end else 0
    if opening.end_offset < max(log_start_offset, synced_offset):
        is_missed = opening.end_offset < synced_offset
        _go_on_at(opening, max(log_start_offset, synced_offset), is_missed=is_missed)
    start_offset = max(log_start_offset, opening.segments[0].base_offset)
    _settle_epochs(opening, start_offset, is_clean=not recover)
    opened = _made(
        opening,
        start_offset,
        recovery_point=min(recovery_point, opening.end_offset) if recover else opening.end_offset,
        is_as_left=bool(bases) and not recover and (opening.are_epochs_known or _is_empty(opening)),
    )
    if opened.is_foreign != was_foreign:
        note_foreign(disk, directory, is_foreign=opened.is_foreign)
    if opening.is_cut:
        # Truncated bytes must not come back with the next crash, beside records that are appended until then.
        opened.segments.active.sync()
        opened.durability.seal_names()
    if opened.durability.unflushed_messages >= config.flush_messages:
        # A killed process left it in the page cache only. It will count as committed, so it is synced as it would have
        # been within its append.
        opened.flush()
    return opened


def _made(opening: _Opening, start_offset: int, *, recovery_point: int, is_as_left: bool) -> Log:
    assert opening.segments[0].base_offset <= start_offset <= opening.end_offset
    opened = Log(
        opening.disk,
        opening.directory,
        opening.name,
        opening.config,
        opening.segments,
        epochs=opening.epochs,
        log_start_offset=start_offset,
        log_end_offset=opening.end_offset,
        recovery_point=recovery_point,
        is_as_left=is_as_left,
        topic_id=opening.topic_id,
    )
    opened.damage, opened.is_foreign = opening.damage, opening.is_foreign
    opened.producer_files.load(opening.snapshot_offsets)
    assert opened.epochs.latest >= opened.epochs.begun
    return opened


def _is_empty(opening: _Opening) -> bool:
    """Without records there is no epoch to know of, and no file of them."""
    return not any(segment.size_bytes for segment in opening.segments)


def _missed_segment(
    opening: _Opening, bases: list[int], lost: list[int], log_start_offset: int, recovery_point: int
) -> int | None:
    """After a clean stop no segment goes without its indexes, and the first leader epoch begins with the log."""
    entries, first_base = opening.epochs.entries, bases[0] if bases else recovery_point
    if entries and (begin := max(entries[0].start_offset, log_start_offset)) < first_base:
        return min([begin, *lost])
    return lost[0] if lost else None


def _missed_first_segment(bases: list[int], lost: list[int], log_start_offset: int, recovery_point: int) -> int | None:
    """Nor does one after a crash, if it was synced and not cut off since: its log is the last of its files to go."""
    first_base = bases[0] if bases else recovery_point
    gone = [base for base in lost if base < min(first_base, recovery_point)]
    reach = ((base, end_offset) for base, end_offset in pairwise([*gone, first_base]) if end_offset > log_start_offset)
    return next((base for base, _ in reach), None)


def _stand_in(opening: _Opening, bases: list[int], missed: int) -> None:
    """An empty segment in the place of the first ones: where a log begins is for retention and for its leader to say,
    or its followers would let go of what only they still have.
    """
    opening.damage = f"{opening.directory} lacks the segment of offset {missed}"
    log.warning("segment.not_found", directory=opening.directory, offset=missed)
    if not bases or missed < bases[0]:
        bases.insert(0, missed)
    assert bases[0] <= missed


def _segment(opening: _Opening, base_offset: int) -> Segment:
    return Segment(
        opening.disk,
        opening.directory,
        base_offset,
        opening.now_ms,
        index_interval_bytes=opening.config.index_interval_bytes,
        index_bytes_max=opening.config.segment_index_bytes,
    )


def _open_segments(opening: _Opening, bases: list[int], recovery_point: int, *, is_clean: bool) -> None:
    """Open all segments, checking those that hold what is behind the recovery point, or the end."""
    if not bases:
        opening.segments.append(_segment(opening, 0))
        return
    assert bases == sorted(set(bases)), f"{opening.directory}: {bases}"
    for index, base_offset in enumerate(bases):
        segment = _segment(opening, base_offset)
        opening.segments.append(segment)
        next_base = bases[index + 1] if index + 1 < len(bases) else None
        # At the recovery point itself a roll may have followed, whose last index entries were not synced.
        is_flushed = is_clean or (next_base is not None and next_base < recovery_point)
        if is_flushed:
            _open_flushed(opening, segment, next_base, recovery_point)
        elif not _recover(opening, segment, next_base, recovery_point):
            _remove_segments(opening, bases[index + 1 :])
            return


def _open_flushed(opening: _Opening, segment: Segment, next_base: int | None, recovery_point: int) -> None:
    """All of it was on the disk once. Whatever of it is there still stays."""
    if _is_foreign(opening, segment, next_base, recovery_point):
        opening.damage = f"{segment.file.path} is another log's: what its indexes or its snapshot name is not in it"
        opening.is_foreign = True
        # Left as it is, with its fingerprints: nothing reads it, and the next start has to find the same.
        segment.is_index_wrong = False
        opening.end_offset = max(recovery_point, segment.base_offset)
        return
    if segment.has_sane_indexes():
        segment.aborted.trust = Trust.FOUND
        if next_base is not None and _reaches(opening, segment, next_base):
            segment.release()
            return
        if next_base is not None:
            opening.end_offset = _salvage(opening, segment, next_base, recovery_point)
            return
        opening.end_offset = _resumed(opening, segment)
        if opening.end_offset == recovery_point:
            return
        if _is_behind(segment, recovery_point, opening.end_offset):
            if recovery_point and not opening.snapshots.is_there(opening.end_offset):
                opening.damage = f"{segment.file.path} ends at {opening.end_offset}, it was closed at {recovery_point}"
            return
    opening.end_offset = _salvage(opening, segment, next_base, recovery_point)


def _is_foreign(opening: _Opening, segment: Segment, next_base: int | None, recovery_point: int) -> bool:
    """Whether the file has come into the place of another: by the fingerprint in the snapshot at its end, by both
    indexes, or by one of them and the end of the file.
    """
    end_offset = recovery_point if next_base is None else next_base
    told = opening.snapshots.fingerprint(end_offset) if end_offset in opening.snapshot_offsets else None
    if is_shifted(segment) or (told is not None and contradicts(segment, end_offset, told)):
        return True
    latest, last = segment.times.last_entry(), segment.offsets.last_entry()
    if latest is None or not (segment.times.is_sane and segment.offsets.is_sane(2**63)) or not denies(segment, latest):
        return False
    if last is not None:
        return not segment.is_batch_at(last)
    try:
        return next_base is None and end_at(segment.file, 0, segment.file.size, segment.base_offset) != recovery_point
    except ProtocolViolation:
        return False


def _reaches(opening: _Opening, segment: Segment, next_base: int) -> bool:
    """Whether the last stretch of a segment is whole, and the next one goes on where it ends."""
    last = segment.offsets.last_entry()
    try:
        end_offset = end_at(segment.file, last.position if last else 0, segment.file.size, segment.base_offset)
    except ProtocolViolation:
        return False
    # A cleaning leaves holes, rightly.
    return end_offset == next_base or (end_offset < next_base and opening.has_gaps)


def _is_behind(segment: Segment, recovery_point: int, end_offset: int) -> bool:
    """Whether the checkpoint can be an older one: its offset is where a batch begins. (0 is where it says nothing.)"""
    if recovery_point <= segment.base_offset:
        return end_offset >= recovery_point
    try:
        place = segment.locate(recovery_point) if end_offset > recovery_point else None
    except ProtocolViolation:
        return False
    return place is not None and place.base_offset == recovery_point


def _resumed(opening: _Opening, segment: Segment) -> int:
    """Where the log ends, as its last stretch says; -1 where that does not hold."""
    try:
        return segment.resume(opening.epochs if opening.are_epochs_known else LeaderEpochs())
    except ProtocolViolation as problem:
        log.warning("segment.damaged", path=segment.file.path, reason=str(problem))
        if not isinstance(problem, OtherEpoch):
            return -1
    try:
        # It may be the epoch file that has changed.
        end_offset = segment.resume(LeaderEpochs())
    except ProtocolViolation:
        return -1
    found = at_once(corrected(opening.epochs, opening.segments, opening.segments[0].base_offset, end_offset))
    if found is None:
        opening.damage = f"{segment.file.path}: a batch of another leader epoch"
        segment.unchecked_start = 0
    else:
        opening.are_epochs_known = False
    return end_offset


def _salvage(opening: _Opening, segment: Segment, next_base: int | None, recovery_point: int) -> int:
    """Look at every batch, and make the indexes again; returns where the last sound one ends. Nothing is cut off but
    what is no batch and lies behind the end of the log.
    """
    segment.forget_indexes()
    end_offset, end_position, size_bytes = segment.base_offset, 0, segment.size_bytes
    segment.unchecked_start = 0
    ceiling = _ceiling(segment, next_base, recovery_point)
    for position, header in segment.sound_batches(is_checked=True, ceiling=ceiling):
        if position > end_position:
            opening.damage = f"{segment.file.path}: no sound batch at position {end_position}, offset {end_offset}"
        segment.note(position, header.size_bytes, header.last_offset, header.max_timestamp)
        if header.is_control and header.has_producer_id:
            segment.aborted.trust = Trust.INCOMPLETE
        end_offset, end_position = header.next_offset, position + header.size_bytes
    is_short = next_base is not None and end_offset < next_base and not opening.has_gaps
    if is_short or (end_position < size_bytes and end_offset != recovery_point):
        opening.damage = f"{segment.file.path}: no sound batch at position {end_position}, offset {end_offset}"
    if end_position < size_bytes and next_base is None and end_offset >= recovery_point:
        _cut(segment, end_position)
    assert segment.base_offset <= end_offset <= ceiling
    log.warning("index.rebuilt", path=segment.file.path, end_offset=end_offset, damage=opening.damage)
    segment.note_first_timestamp()
    segment.finish()
    return end_offset


def _ceiling(segment: Segment, next_base: int | None, recovery_point: int) -> int:
    """Where the last batch of the segment ends at most."""
    if next_base is not None:
        return next_base
    if recovery_point <= segment.base_offset or _is_behind(segment, recovery_point, ANY_OFFSET):
        return ANY_OFFSET
    return recovery_point


def _recover(opening: _Opening, segment: Segment, next_base: int | None, recovery_point: int) -> bool:
    """Whether the log goes on behind this segment, in the one that begins at `next_base`."""
    opening.end_offset, is_whole, damage = recover_segment(segment, opening.epochs, recovery_point, next_base)
    opening.damage = opening.damage or damage
    opening.is_cut |= not is_whole
    if next_base is None:
        return True
    # A crash can take all of a segment and leave the name of the next. Cleaning leaves such holes too, rightly, below
    # where it has come to; what is appended follows on, also to a hole in the leader's log.
    is_followed = is_whole and (opening.end_offset == next_base or next_base <= opening.cleaned_offset)
    if is_followed:
        segment.finish()
    return is_followed


def recover_segment(
    segment: Segment, epochs: LeaderEpochs, recovery_point: int, next_base: int | None
) -> tuple[int, bool, str]:
    """Check all batches, rebuild the indexes; returns where the segment ends, whether nothing had to be cut, and what
    is damaged of that which was synced. A batch that reaches into the next segment, or beyond what an index can say,
    does not hold.
    """
    ceiling = segment.offset_max + 1 if next_base is None else next_base
    segment.forget_indexes()
    end_offset, end_position = segment.base_offset, 0
    size_bytes, damage = segment.size_bytes, ""
    for position, header in segment.sound_batches(is_checked=True, synced_offset=recovery_point, ceiling=ceiling):
        if position > end_position:
            damage = f"{segment.file.path}: no sound batch at position {end_position}, offset {end_offset}"
        if header.leader_epoch > epochs.latest:
            epochs.assign(header.leader_epoch, header.base_offset)
        segment.note(position, header.size_bytes, header.last_offset, header.max_timestamp)
        # Whether it has aborted anything the producers' state tells, which is loaded last.
        if header.is_control and header.has_producer_id:
            segment.aborted.trust = Trust.INCOMPLETE
        end_offset, end_position = header.next_offset, position + header.size_bytes
    if end_position < size_bytes:
        if end_offset < recovery_point:
            damage = f"{segment.file.path}: no sound batch at position {end_position}, offset {end_offset}"
        _cut(segment, end_position)
    segment.note_first_timestamp()
    segment.unchecked_end = segment.size_bytes if damage else 0
    assert segment.base_offset <= end_offset <= ceiling
    return end_offset, end_position == size_bytes, damage


def _cut(segment: Segment, end_position: int) -> None:
    path, lost_bytes = segment.file.path, segment.size_bytes - end_position
    assert lost_bytes > 0, f"{path} is cut at {end_position}, its end"
    log.warning("segment.truncated", path=path, to_bytes=end_position, lost_bytes=lost_bytes)
    segment.file.truncate(end_position)
    assert segment.size_bytes == end_position
    # Otherwise another crash could bring truncated bytes back into the place of records that are appended now.
    segment.file.sync()
    segment.unchecked_end = min(segment.unchecked_end, end_position)


def _remove_segments(opening: _Opening, bases: list[int]) -> None:
    opening.is_cut = True
    for base_offset in bases:
        stray = _segment(opening, base_offset)
        log.warning("segment.removed", path=stray.file.path, lost_bytes=stray.size_bytes)
        _drop(opening, stray)


def _believable_start(opening: _Opening, log_start_offset: int, end_offset: int) -> int:
    """After a clean stop the start lies within the log, and the first leader epoch begins there or is a later one's.

    A start too far on would hide records, and retention would delete them.
    """
    entries = opening.epochs.entries
    first = entries[0].start_offset if entries else log_start_offset
    if first >= log_start_offset and log_start_offset <= max(end_offset, first):
        return log_start_offset
    believed = min(first, end_offset)
    assert believed < log_start_offset, f"{opening.name}: a doubted start, {log_start_offset}, goes on to {believed}"
    log.warning("log_start.doubted", log=str(opening.name), told=log_start_offset, believed=believed)
    return believed


def _go_on_at(opening: _Opening, offset: int, *, is_missed: bool) -> None:
    """The log ends below an offset that was given out once: it goes on there, in a segment of its own.

    Below its start nothing is served any more; below what was synced there is something missing.
    """
    if is_missed:
        opening.damage = (
            opening.damage or f"{opening.directory} ends at {opening.end_offset}, it was closed or synced at {offset}"
        )
    assert offset > opening.end_offset, f"{opening.directory} ends at {opening.end_offset}"
    log.warning("log.advanced", log=str(opening.name), from_offset=opening.end_offset, to_offset=offset)
    opening.is_cut = True
    if not is_missed:
        _set_aside(opening, offset)
    elif opening.segments[-1].size_bytes or (opening.segments[-1].base_offset < offset and not opening.segments[1:]):
        opening.segments[-1].finish()  # an empty one too where the log began there
    else:
        _drop(opening, opening.segments.pop())
    assert not opening.segments or opening.segments[-1].base_offset < offset
    opening.segments.append(_segment(opening, offset))
    opening.end_offset = offset


def _set_aside(opening: _Opening, offset: int) -> None:
    """All of the log lies below its start. It goes out of the way, and is kept: the start may not be true."""
    assert all(segment.base_offset < offset for segment in opening.segments), f"{opening.name} goes on at {offset}"
    kept = [segment for segment in opening.segments if segment.size_bytes]
    parent = os.path.dirname(opening.directory)
    files = [os.path.basename(file) for segment in kept for file in segment.paths()]
    bases = (aside_directory(opening.name, f"{number:08x}{offset:024x}", STRAY_DIRECTORY) for number in count())
    paths = (os.path.join(parent, base) for base in bases)  # an earlier start may have kept such files
    path = next(path for path in paths if not any(opening.disk.exists(os.path.join(path, file)) for file in files))
    if kept:
        opening.disk.make_directory(path)
        log.warning("stray.moved", log=str(opening.name), moved_to=path)
    for segment in kept:
        segment.close()
        for file in segment.paths():
            opening.disk.rename(file, os.path.join(path, os.path.basename(file)))
    for segment in opening.segments:
        if segment not in kept:
            _drop(opening, segment)
    opening.segments = []


def _drop(opening: _Opening, segment: Segment) -> None:
    assert segment.directory == opening.directory, f"{segment.file.path} is of another log than {opening.name}"
    segment.close()
    for path in segment.paths():
        opening.disk.remove(path)


def _settle_epochs(opening: _Opening, start_offset: int, *, is_clean: bool) -> None:
    """Take the epochs of the file, as far as the log's batches are of them.

    A follower compares its newest epoch with the leader's, and truncates where they part: epochs of another log would
    cost it records that are committed.
    """
    if not opening.are_epochs_known and (opening.epochs.entries or not _is_empty(opening)):
        opening.epochs = epochs_in(opening.segments, start_offset)
    opening.epochs = with_former(opening.epochs, opening.segments, start_offset)
    opening.epochs.truncate_from_end(opening.end_offset)
    opening.epochs.truncate_from_start(start_offset)
    place = (opening.segments, start_offset, opening.end_offset)
    if not opening.is_foreign and not are_confirmed(opening.epochs, *place):
        found = at_once(corrected(opening.epochs, *place, is_synced=is_clean))
        if found is None:
            opening.damage = opening.damage or f"{opening.directory}: a batch of another leader epoch"
        else:
            log.warning("epochs.rebuilt", directory=opening.directory, entries=len(found.entries))
            opening.epochs, opening.are_epochs_known = found, False
    assert opening.epochs.begun <= opening.epochs.latest
