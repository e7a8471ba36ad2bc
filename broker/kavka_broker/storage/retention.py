"""Which segments of a log have outlived their topic's retention.

From the oldest on, a segment goes when one of these holds:

- it lies below the log's start, as DeleteRecords has moved it;
- by time: its youngest record is older than `retention.ms`, as the time index says and its batches bear out;
- by size: without it the log still has `retention.bytes`.

The last two count only where the clean-up policy says `delete`. Nothing that is not below the high watermark goes, and
the first segment that stays keeps all that follow. The active segment may go too, if it has records; another takes its
place.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka_broker.storage.log_segments import SegmentedLog
    from kavka_broker.storage.segment import Segment


def expired_count(log: "SegmentedLog", now_ms: int, high_watermark: int) -> int:
    """How many of the oldest segments are to be deleted."""
    ends = [segment.base_offset for segment in log.segments[1:]] + [log.log_end_offset]
    size_bytes = log.size_bytes
    for count, (segment, end_offset) in enumerate(zip(log.segments, ends, strict=True)):
        is_expired = end_offset <= log.log_start_offset or _is_expired(log, segment, size_bytes, now_ms)
        is_empty_active = segment is log.segments[-1] and not segment.size_bytes
        if not is_expired or is_empty_active or end_offset > high_watermark:
            return count
        size_bytes -= segment.size_bytes
    return len(log.segments)


def _is_expired(log: "SegmentedLog", segment: "Segment", size_bytes: int, now_ms: int) -> bool:
    config = log.config
    if not config.deletes:
        return False
    if config.retention_bytes >= 0 and size_bytes - segment.size_bytes >= config.retention_bytes:
        return True
    return config.retention_ms >= 0 and now_ms - segment.retention_timestamp_ms > config.retention_ms
