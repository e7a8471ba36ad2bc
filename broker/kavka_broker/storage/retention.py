"""Deleting the segments of a log that have outlived their topic's retention.

From the oldest on, a segment goes when one of these holds:

- it lies below the log's start, as DeleteRecords has moved it;
- by time: its youngest record is older than `retention.ms`, as the time index says and its batches bear out;
- by size: without it the log still has `retention.bytes`.

The last two count only where the clean-up policy says `delete`. Nothing that is not below the high watermark goes, and
the first segment that stays keeps all that follow. The active segment may go too, if it has records; another takes its
place.
"""

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation
from kavka_broker.protocol.records.batch import NO_TIMESTAMP
from kavka_broker.storage.batch_walk import RESYNC_BYTES_MAX
from kavka_broker.storage.log import Log
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segments import Segments
from kavka_broker.storage.time_index_check import confirms

log = get("storage")


def delete_expired(log_: Log, now_ms: int, high_watermark: int) -> int:
    """Delete old segments as the topic's retention says; returns how many. None above the high watermark goes, and none
    that a cut is planned for, or that is yet to be synced after one. Raises KAFKA_STORAGE_ERROR.
    """
    state, segments = log_.state, log_.segments
    up_to = min(high_watermark, log_.durability.untouched_end)
    count = expired_count(segments, log_.config, state.start_offset, state.end_offset, up_to=up_to, now_ms=now_ms)
    if not count:
        return 0
    if count == len(segments):
        try:
            log_.roll(now_ms)
        except BrokerError:
            count -= 1  # the disk may be full; the older ones make room
    state.note_changed()
    try:
        segments.discard(segments.all[:count])
    except OSError as problem:
        raise state.storage_error("delete", problem) from problem
    assert count < len(segments), f"{state.name} would be left without a segment"
    segments.replace(segments.all[count:])
    log_.advance_start(segments.first_base)
    assert segments.first_base <= state.start_offset <= state.end_offset
    log.info("segments.deleted", log=str(state.name), count=count, log_start_offset=state.start_offset)
    return count


def expired_count(
    segments: Segments, config: LogConfig, log_start_offset: int, log_end_offset: int, *, up_to: int, now_ms: int
) -> int:
    """How many of the oldest segments are to be deleted; none that reaches behind `up_to`."""
    ends = [segment.base_offset for segment in segments.all[1:]] + [log_end_offset]
    size_bytes = segments.size_bytes
    for count, (segment, end_offset) in enumerate(zip(segments, ends, strict=True)):
        is_expired = end_offset <= log_start_offset or _is_expired(config, segment, size_bytes, now_ms)
        is_empty_active = segment is segments.active and not segment.size_bytes
        if not is_expired or is_empty_active or end_offset > up_to:
            return count
        size_bytes -= segment.size_bytes
        assert size_bytes >= 0
    return len(segments)


def _is_expired(config: LogConfig, segment: Segment, size_bytes: int, now_ms: int) -> bool:
    if not config.deletes:
        return False
    if config.retention_bytes >= 0 and size_bytes - segment.size_bytes >= config.retention_bytes:
        return True
    return config.retention_ms >= 0 and now_ms - youngest_ms(segment) > config.retention_ms


def youngest_ms(segment: Segment) -> int:
    """How old the youngest record is; when the file was last written where no timestamp or no index says it."""
    if segment.largest.timestamp_ms >= 0 and segment.is_age_known is None:
        segment.is_age_known = _bears_out_largest(segment)
    if segment.largest.timestamp_ms >= 0 and segment.is_age_known:
        return segment.largest.timestamp_ms
    return segment.modified_ms


def _bears_out_largest(segment: Segment) -> bool:
    """Whether the batch that is said to be the youngest has that time, and none of the last stretch is younger.

    It is asked once: what the time index says may be damaged, and what is deleted for it is gone.
    """
    last = segment.offsets.last_entry()
    begin = 0 if last is None else last.position
    if segment.file.size - begin > RESYNC_BYTES_MAX:
        return False
    try:
        latest_ms = max((header.max_timestamp for _, header in segment.batches(begin)), default=NO_TIMESTAMP)
        return latest_ms <= segment.largest.timestamp_ms and confirms(segment, segment.largest)
    except (ProtocolViolation, OSError):
        return False
