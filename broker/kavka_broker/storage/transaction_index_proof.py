"""Working out from the batches which transactions were aborted, and whether an index that was found says the same.

A producer's batches and markers are taken note of in the order of the log, from a snapshot of the producers on. Nobody
waits on the loop for a long log: the work goes in slices, and what is appended meanwhile is in the index already.
"""

from collections.abc import Generator, Iterator
from typing import Final

from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.core.partition.transactions import NO_OFFSET
from kavka_broker.logs import get
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.storage.log import Log
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.producer_walk import entry_of, note_batch
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.transaction_index import AbortedTransaction, Trust

log = get("storage")

HEADERS_PER_SLICE_MAX: Final = 1_000
"""Takes a few milliseconds."""


def prove(log_: Log) -> Iterator[None]:
    """Compare an index that is in doubt with the batches, and those behind it until its transactions have ended; one
    that is wrong is made again. A step of this iterator is a slice.

    Raises OSError, or ProtocolViolation where a batch is not whole.
    """
    first = next((segment for segment in log_.segments if segment.aborted.trust is Trust.DOUBTED), None)
    if first is None:
        log_.segments.look_at_indexes()  # retention may have taken it
        return
    producers = ProducerStates()
    snapshots = ProducerSnapshots(log_.disk, log_.directory, log_.topic_id, log_.name.partition)
    producers.replace(snapshots.load(first.base_offset, log_.log_end_offset, log_.producer_files.bears_out))
    start = snapshots.newest if snapshots.newest >= 0 else log_.log_start_offset
    first_end_offset, floor = first.offset_max, snapshots.newest
    assert start <= log_.log_end_offset
    for segment in log_.segments.from_offset(start):
        if segment.base_offset > first.base_offset:
            first_end_offset = min(first_end_offset, segment.base_offset)
            if segment.aborted.trust is Trust.WHOLE or _is_settled(producers, first_end_offset):
                break
        found: list[AbortedTransaction] = []
        end_offset = yield from _walk(log_, segment, start, floor, producers, found)
        if end_offset is None:
            return
        floor = end_offset
        if segment.base_offset >= first.base_offset:
            is_right = _prove(segment, found, end_offset, knows_all=snapshots.newest >= 0 or not start)
            if not is_right:
                log_.durability.sync_later(segment.aborted.path)
    log_.segments.look_at_indexes()


def _walk(
    log_: Log, segment: Segment, start: int, floor: int, producers: ProducerStates, found: list[AbortedTransaction]
) -> Generator[None, None, int | None]:
    """Take note of the batches from `start` on, and find what they have aborted. Returns where they end; None where the
    log was cut or closed meanwhile. Raises ProtocolViolation where one of them begins below `floor`, up to where
    producers are noted, or before the end of the last: nobody has looked at their CRC.
    """
    truncations, end_offset = log_.truncations, segment.base_offset
    for number, (position, header) in enumerate(segment.batches(segment.begin_before(start)), 1):
        if header.last_offset >= start:
            if not floor <= header.base_offset <= header.last_offset:
                raise ProtocolViolation(f"{segment.file.path}: the batch at {position} begins below {floor}")
            floor = header.next_offset
        if header.has_producer_id and header.last_offset >= start:
            ended = note_batch(producers, header, segment.batch_at(position, header))
            if ended is not None and ended.is_aborted:
                found.append(entry_of(ended))
        end_offset = header.next_offset
        if number % HEADERS_PER_SLICE_MAX == 0:
            yield
            if log_.truncations != truncations or log_.is_closed or segment not in log_.segments:
                return None
    return end_offset


def _is_settled(producers: ProducerStates, end_offset: int) -> bool:
    """Whether every transaction that began below `end_offset` has ended."""
    open_offset = producers.transactions.first_open_offset
    return open_offset == NO_OFFSET or open_offset >= end_offset


def _prove(segment: Segment, found: list[AbortedTransaction], end_offset: int, *, knows_all: bool) -> bool:
    """The batches below `end_offset` say `found`; whether the index has said so too. Without the producers' state
    before them it may know more.
    """
    index = segment.aborted
    known = [entry for entry in index if entry.last_offset < end_offset]
    if not knows_all:
        by_marker = {entry.last_offset: entry for entry in [*found, *known]}
        found = [by_marker[offset] for offset in sorted(by_marker)]
    assert index.trust is not Trust.INCOMPLETE
    index.trust = Trust.WHOLE
    is_right = found == known
    if not is_right:
        log.error("transactions.rebuilt", path=index.path, entries=len(found), entries_before=len(known))
        index.replace([*found, *(entry for entry in index if entry.last_offset >= end_offset)])
    return is_right
