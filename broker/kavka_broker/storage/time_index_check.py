"""Whether the log bears out what an entry of its time index says: that may be damaged, or another segment's."""

from kavka_broker.logs import get
from kavka_broker.protocol.records.batch import BatchHeader, crc_is_valid
from kavka_broker.storage.batch_walk import Damage
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.time_index import TimestampOffset

log = get("storage")


def confirms(segment: Segment, entry: TimestampOffset) -> bool:
    """Whether the batch that the entry names has its timestamp."""
    try:
        named = _named_by(segment, entry)
    except Damage:
        return False
    if named is not None and named[1].max_timestamp == entry.timestamp_ms:
        return True
    if not segment.is_index_wrong:
        segment.is_index_wrong = True
        path = segment.times.path
        log.warning("index.not_believed", path=path, timestamp_ms=entry.timestamp_ms, offset=entry.offset)
    return False


def denies(segment: Segment, entry: TimestampOffset) -> bool:
    """Whether there is a sound batch where the entry says, and it has another timestamp."""
    try:
        named = _named_by(segment, entry)
    except Damage:
        return False
    return named is not None and named[1].max_timestamp != entry.timestamp_ms and crc_is_valid(segment.batch_at(*named))


def _named_by(segment: Segment, entry: TimestampOffset) -> tuple[int, BatchHeader] | None:
    """Position and header of the batch that holds the entry's offset. Raises Damage."""
    place = segment.locate(entry.offset)
    if place is None or place.base_offset > entry.offset:
        return None
    return place.position, segment.header_at(place.position)
