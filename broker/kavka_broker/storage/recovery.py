"""Opening a log: find its segments, and after a crash find out which bytes to believe.

After a clean stop everything is as it was left. After any other, what lies behind the recovery point may be torn,
missing, or zeros. Those segments are read batch by batch: length, magic, CRC, ascending offsets. At the first batch
that does not hold, the log is cut, and later segments go. Indexes, leader epochs and the producers' state are derived
from batches, so they are built anew for what was checked.

Segments below the recovery point keep their indexes if these look sane, else they are rebuilt from the log.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import MAGIC, BatchHeader, crc_is_valid
from kavka_broker.storage import checkpoints, partition_metadata
from kavka_broker.storage.disk import UNFINISHED_SUFFIXES, Disk
from kavka_broker.storage.log import Log
from kavka_broker.storage.names import (
    LEADER_EPOCHS,
    LOG,
    SEGMENT_FILES,
    SWAP,
    PartitionName,
    offset_file,
    parse_future,
    parse_offset_file,
    parse_partition,
)
from kavka_broker.storage.segment import OFFSETS_MAX, Segment

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


def open_log(
    disk: Disk,
    directory: str,
    config: LogConfig,
    *,
    recover: bool,
    recovery_point: int,
    log_start_offset: int,
    now_ms: int,
) -> Log:
    """The log in `directory`, which is made where it does not exist."""
    base = os.path.basename(directory)
    name = parse_partition(base) or parse_future(base)
    if name is None:
        raise ValueError(f"{directory} is not the name of a log: <topic>-<partition>")
    disk.make_directory(directory)
    bases = _clean_up(disk, directory)
    epochs, are_epochs_known = _read_epochs(disk, directory)
    opening = _Opening(disk, directory, name, config, now_ms, epochs)
    _open_segments(opening, bases, recovery_point if recover else None)
    if opening.end_offset < log_start_offset:
        # The log was cut below its start: nothing of it is served any more.
        _restart(opening, log_start_offset)
    if not are_epochs_known:
        opening.epochs = LeaderEpochs()
        for segment in opening.segments:
            _note_epochs(opening.epochs, segment)
    start_offset = max(log_start_offset, opening.segments[0].base_offset)
    opening.epochs.truncate_from_end(opening.end_offset)
    opening.epochs.truncate_from_start(start_offset)
    opened = Log(
        disk,
        directory,
        name,
        config,
        opening.segments,
        epochs=opening.epochs,
        log_start_offset=start_offset,
        log_end_offset=opening.end_offset,
        recovery_point=min(recovery_point, opening.end_offset) if recover else opening.end_offset,
        is_as_left=bool(bases) and are_epochs_known and not recover,
        topic_id=partition_metadata.read(disk, directory),
    )
    opened.load_producers()
    if opening.is_cut:
        # What was cut off must not come back with the next crash, beside what is appended until then.
        opened.seal_truncation()
    if opened.unflushed_messages >= config.flush_messages:
        # A killed process left it in the page cache only. It will count as committed, so it is synced as it would have
        # been within its append.
        opened.flush()
    return opened


def _clean_up(disk: Disk, directory: str) -> list[int]:
    """Remove what a crash left half done; returns the first offsets of the segments."""
    names = disk.names(directory)
    for name in names:
        if name.endswith(SWAP):
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{directory}/{name}: a compaction by Kafka was interrupted; start Kafka on it once to finish it",
            )
        if name.endswith(UNFINISHED_SUFFIXES):
            disk.remove(os.path.join(directory, name))
    parsed = [found for found in map(parse_offset_file, names) if found is not None]
    bases = sorted(offset for offset, suffix in parsed if suffix == LOG)
    for offset, suffix in parsed:
        if suffix in SEGMENT_FILES and offset not in bases:
            disk.remove(os.path.join(directory, offset_file(offset, suffix)))
    return bases


def _read_epochs(disk: Disk, directory: str) -> tuple[LeaderEpochs, bool]:
    try:
        entries = checkpoints.read_epochs(disk, os.path.join(directory, LEADER_EPOCHS))
    except checkpoints.MalformedCheckpoint as problem:
        log.warning("epochs.rebuilt", directory=directory, reason=str(problem))
        entries = None
    return LeaderEpochs(entries or ()), entries is not None


def _segment(opening: _Opening, base_offset: int) -> Segment:
    return Segment(
        opening.disk,
        opening.directory,
        base_offset,
        opening.now_ms,
        index_interval_bytes=opening.config.index_interval_bytes,
        index_bytes_max=opening.config.segment_index_bytes,
    )


def _open_segments(opening: _Opening, bases: list[int], recovery_point: int | None) -> None:
    """Open all segments, checking those that hold what is behind the recovery point (None: a clean stop)."""
    if not bases:
        opening.segments.append(_segment(opening, 0))
        return
    for index, base_offset in enumerate(bases):
        segment = _segment(opening, base_offset)
        opening.segments.append(segment)
        next_base = bases[index + 1] if index + 1 < len(bases) else None
        # At the recovery point itself a roll may have followed, whose last index entries were not synced.
        is_flushed = recovery_point is None or (next_base is not None and next_base < recovery_point)
        if not _open_segment(opening, segment, next_base, is_flushed=is_flushed):
            _remove_segments(opening, bases[index + 1 :])
            return


def _open_segment(opening: _Opening, segment: Segment, next_base: int | None, *, is_flushed: bool) -> bool:
    """Whether the log goes on behind this segment, in the one that begins at `next_base`."""
    if is_flushed and segment.has_sane_indexes():
        if next_base is not None:
            segment.release()
            return True
        try:
            opening.end_offset = segment.resume()
        except ProtocolViolation as problem:
            log.warning("segment.torn", path=segment.file.path, reason=str(problem))
        else:
            return True
    opening.end_offset, is_whole = recover_segment(segment, opening.epochs)
    opening.is_cut |= not is_whole
    if next_base is None:
        return True
    # A crash can take all of a segment and leave the name of the next. Compaction leaves such holes too, rightly.
    may_have_holes = is_flushed or opening.config.compacts
    is_followed = is_whole and (may_have_holes or opening.end_offset == next_base)
    if is_followed:
        segment.finish()
    return is_followed


def recover_segment(segment: Segment, epochs: LeaderEpochs) -> tuple[int, bool]:
    """Check all batches, rebuild the indexes; returns where the segment ends, and whether nothing had to be cut."""
    segment.forget_indexes()
    end_offset, end_position = segment.base_offset, 0
    size_bytes = segment.size_bytes
    for position, header in _sound_batches(segment):
        if header.leader_epoch > epochs.latest:
            epochs.assign(header.leader_epoch, header.base_offset)
        segment.note(position, header.size_bytes, header.last_offset, header.max_timestamp)
        # Whether it has aborted anything the producers' state tells, which is loaded last.
        segment.aborted.is_incomplete |= header.is_control and header.has_producer_id
        end_offset, end_position = header.next_offset, position + header.size_bytes
    if end_position < size_bytes:
        log.warning(
            "segment.truncated", path=segment.file.path, to_bytes=end_position, lost_bytes=size_bytes - end_position
        )
        segment.file.truncate(end_position)
        # Or another crash could bring what was cut back into the place of what is appended now.
        segment.file.sync()
    segment.note_first_timestamp()
    segment.unchecked_end = 0
    return end_offset, end_position == size_bytes


def _sound_batches(segment: Segment) -> Iterator[tuple[int, BatchHeader]]:
    """The batches of a segment up to the first that does not hold."""
    end_offset = segment.base_offset
    try:
        for position, header in segment.batches():
            is_sound = (
                header.magic == MAGIC
                and end_offset <= header.base_offset <= header.last_offset <= segment.base_offset + OFFSETS_MAX
                and crc_is_valid(segment.batch_at(position, header))
            )
            if not is_sound:
                return
            yield position, header
            end_offset = header.next_offset
    except ProtocolViolation:
        return


def _note_epochs(epochs: LeaderEpochs, segment: Segment) -> None:
    for _, header in segment.batches():
        if header.leader_epoch > epochs.latest:
            epochs.assign(header.leader_epoch, header.base_offset)


def _remove_segments(opening: _Opening, bases: list[int]) -> None:
    opening.is_cut = True
    for base_offset in bases:
        stray = _segment(opening, base_offset)
        log.warning("segment.removed", path=stray.file.path, lost_bytes=stray.size_bytes)
        stray.close()
        for path in stray.paths():
            opening.disk.remove(path)


def _restart(opening: _Opening, offset: int) -> None:
    opening.is_cut = True
    for segment in opening.segments:
        segment.close()
        for path in segment.paths():
            opening.disk.remove(path)
    opening.segments = [_segment(opening, offset)]
    opening.end_offset = offset
