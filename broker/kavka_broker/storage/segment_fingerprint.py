"""What tells the file of a segment from that of another log with batches in the same places: two of its CRCs.

They are written down where the segment ends, in the snapshot of producers that a roll and a clean stop leave there
(`producer_snapshot`). A batch's CRC covers neither its offset nor its leader epoch, so replicas have the same.
Compaction may rewrite a batch, or take it out; what it may have had its hands on bears no fingerprint.
"""

from itertools import islice
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import DELETE_HORIZON_BIT, BatchHeader, crc_is_valid
from kavka_broker.storage.segment import Segment

#: There is no batch to name, or it could not be read.
UNKNOWN: Final = -1


class Fingerprint(NamedTuple):
    """The CRCs of the first and the last batch of a segment that begins at `base_offset`."""

    base_offset: int
    first_crc: int
    last_crc: int


def fingerprint_of(segment: Segment, end_offset: int) -> Fingerprint:
    """What tells this segment, which ends at `end_offset` so far, from another."""
    assert end_offset >= segment.base_offset, f"{segment.file.path} ends at {end_offset}"
    crcs = [UNKNOWN, UNKNOWN]
    try:
        for at, found in enumerate((batch_of(segment, segment.base_offset), batch_of(segment, end_offset - 1))):
            if found is not None:
                crcs[at] = found.crc
    except OSError:
        pass  # it only tells less
    return Fingerprint(segment.base_offset, *crcs)


def contradicts(segment: Segment, end_offset: int, told: Fingerprint) -> bool:
    """Whether a sound batch stands where `told` names another, or reaches over the end. Raises OSError."""
    first = UNKNOWN if segment.base_offset != told.base_offset else told.first_crc
    return _is_other(segment, segment.base_offset, first) or (
        _is_other(segment, end_offset - 1, told.last_crc, end_offset)
    )


def _is_other(segment: Segment, offset: int, crc: int, end_offset: int | None = None) -> bool:
    found = None if crc == UNKNOWN else batch_of(segment, offset)
    if found is None:
        return False
    if found.crc == crc and end_offset in (None, found.next_offset):
        return False
    return not _may_be_cleaned(found) and _is_sound(segment, found)


def batch_of(segment: Segment, offset: int) -> BatchHeader | None:
    """The header of the batch that holds `offset`; None where there is none. Raises OSError."""
    try:
        place = segment.locate(offset)
        if place is None or place.base_offset > offset:
            return None
        return next(segment.batches(place.position))[1]
    except ProtocolViolation:
        return None


def _is_sound(segment: Segment, header: BatchHeader) -> bool:
    place = segment.locate(header.base_offset)
    return place is not None and crc_is_valid(segment.batch_at(place.position, header))


def _may_be_cleaned(header: BatchHeader) -> bool:
    return bool(header.attributes & DELETE_HORIZON_BIT) or header.records_count != header.last_offset_delta + 1


def is_shifted(segment: Segment) -> bool:
    """Whether the first batches are sound and follow on each other, and begin below the segment."""
    try:
        found = [(segment.batch_at(at, header), header) for at, header in islice(segment.batches(), 2)]
    except ProtocolViolation:
        return False
    return (
        len(found) == 2
        and found[0][1].base_offset < segment.base_offset
        and found[0][1].next_offset == found[1][1].base_offset
        and all(crc_is_valid(batch) for batch, _ in found)
    )
