"""Holds a snapshot of producers that does not say whose it is, as Apache Kafka writes them, against the batches.

A snapshot that has come from another log makes a broker take a batch that is sent again for a new one, or refuse a new
one. The batches just before the snapshot say of their producers what it should, and where it
places its newest batch, there has to be that batch. What lies further back is not read: the check may run on the loop.

A batch that is not there contradicts nothing: compaction takes those of producers that are forgotten. Nor does a
producer that is missing, if it may have been forgotten when the snapshot was written.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kavka_broker.core.partition.producer_state import Producer, ProducerStates
from kavka_broker.core.partition.transactions import NO_OFFSET
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage.producer_walk import NOT_READ, note_batch
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segment_fingerprint import batch_of
from kavka_broker.storage.segments import Segments

OFFSETS_READ_MAX: Final = 100
"""Before the snapshot, and what an index interval holds besides: less than a millisecond."""
FORGOTTEN_AFTER_MS: Final = 86_400_000
"""The default of `producer.id.expiration.ms`, in Apache Kafka and here."""


def are_borne_out(
    segments: Segments, offset: int, producers: Sequence[tuple[int, Producer]], log_start_offset: int
) -> bool:
    """Whether these can be the producers before `offset`, as far as the batches that are read tell."""
    known = dict(producers)
    newest = max(producers, key=lambda entry: _last_offset(entry[1]), default=None)
    if newest is not None and _last_offset(newest[1]) >= offset:
        return False
    try:
        found = _last_producers(segments, max(log_start_offset, offset - OFFSETS_READ_MAX), offset)
        latest_ms = max((producer.timestamp_ms for _, producer in found), default=0)
        return (newest is None or _may_be_last(segments, *newest)) and all(
            _agrees(segments, producer_id, known[producer_id], producer)
            if producer_id in known
            else producer.timestamp_ms + FORGOTTEN_AFTER_MS <= latest_ms
            for producer_id, producer in found
        )
    except OSError:
        return False


def _last_offset(producer: Producer) -> int:
    """Where the producer's last batch ends; -1 where none is known."""
    return producer.batches[-1].last_offset if producer.batches else -1


def _last_producers(segments: Segments, start: int, end: int) -> ProducerStates:
    """The producers as the batches from `start` up to `end` say them; none of them where one of these is damaged.
    Raises OSError.
    """
    found, floor = ProducerStates(), start
    try:
        for segment, position, header in _batches(segments, start, end):
            if header.last_offset < start:
                continue
            if not floor <= header.last_offset or header.base_offset > header.last_offset:
                return ProducerStates()
            floor = header.next_offset
            if header.has_producer_id and header.base_offset >= start:
                note_batch(found, header, segment.batch_at(position, header) if header.is_control else NOT_READ)
    except ProtocolViolation:
        return ProducerStates()
    return found


def _batches(segments: Segments, start: int, end: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
    """Batches from one before `start` on that begin below `end`: segment, position and header, which is not checked.
    Raises OSError, and ProtocolViolation where one is not whole.
    """
    for segment in segments.from_offset(start):
        if segment.base_offset >= end:
            return
        for position, header in segment.batches(segment.begin_before(start)):
            if header.base_offset >= end:
                return
            yield segment, position, header


def _agrees(segments: Segments, producer_id: int, known: Producer, found: Producer) -> bool:
    """Whether a producer is known as it should be, if these are its last batches that are `found`."""
    if known.epoch < found.epoch or known.coordinator_epoch < found.coordinator_epoch:
        return False
    if _last_offset(known) != _last_offset(found):
        return _last_offset(known) > _last_offset(found) and _may_be_last(segments, producer_id, known)
    return (known.transaction_first_offset == NO_OFFSET) is (found.transaction_first_offset == NO_OFFSET)


def _may_be_last(segments: Segments, producer_id: int, known: Producer) -> bool:
    """Whether the producer's last batch may be there. Raises OSError."""
    offset = _last_offset(known)
    header = None if offset < 0 else batch_of(segments.from_offset(offset)[0], offset)
    if header is None:
        return True
    return not header.is_control and (header.producer_id, header.last_offset) == (producer_id, offset)
