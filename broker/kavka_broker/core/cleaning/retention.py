"""What of a batch stays in a compacted log.

A record stays while it is the newest of its key, as far as the run has looked. A tombstone, the newest without a value,
stays until the delete horizon of its batch, so that every reader that is not too far behind sees the deletion. The
horizon is not known before a run has met the tombstone for the first time: that run writes it into the batch, as base
timestamp, with attribute bit 6 (KIP-534). Markers of transactions go the same way, once nothing of their transaction
is left (`transactions`).

A batch of which no record stays goes too, with two exceptions, which stay as a header without records:

- the last batch of each producer, for its epoch and its sequence are known by it;
- the last batch of each segment that is written, so that a log never ends below an offset that it has given out, and
  what lies behind a segment is never in doubt.

A batch keeps its offsets, its sequence and its epochs, whatever goes from inside it.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kavka_broker.core.cleaning.transactions import CleanedTransactions
from kavka_broker.protocol.records.batch import BatchHeader, Buffer
from kavka_broker.protocol.records.compacted_batch import RetainedBatch, empty_batch
from kavka_broker.protocol.records.control import control_type
from kavka_broker.protocol.records.entries import Entry, entries


class LastOfProducer(NamedTuple):
    """The last record of an active producer, and its epoch. `offset` is -1 where only a marker of it is known."""

    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Terms:
    """Offsets, times and lookups that decide in one run which records stay."""

    newest: Callable[[bytes], int]  # the newest offset of a key; -1 where the run has not met it
    looked_to: int  # the last offset that `newest` takes account of
    now_ms: int
    delete_retention_ms: int
    last_of: Callable[[int], LastOfProducer | None]  # by a producer's id; None where it is not active


class Retained(NamedTuple):
    """The outcome for a batch: its bytes, or None where it is removed, and how many records are left in it."""

    batch: Buffer | None
    records: int


GONE = Retained(None, 0)


def retain(
    header: BatchHeader, batch: Buffer, terms: Terms, transactions: CleanedTransactions, *, is_last: bool
) -> Generator[int, None, Retained]:
    """Give what stays of a batch; `is_last`: of its segment. Raises ProtocolViolation for records that cannot be read.

    A batch may unpack to a large size. So its records are gone through in pieces, twice where the batch changes and has
    several, and each piece yields the number of its records: no more than a piece and the output are held.
    """
    horizon_ms = header.base_timestamp if header.has_delete_horizon else None
    is_past = horizon_ms is not None and horizon_ms <= terms.now_ms
    is_spent = _is_spent(header, batch, transactions)
    kept = _Kept()
    if header.is_control:
        kept.has_tombstone = is_spent  # markers have their horizon as tombstones have
        yield from _look(header, batch, kept, lambda _: not (is_spent and is_past))
    elif not is_spent:
        yield from _look(header, batch, kept, lambda record: _stays(record, terms, tombstones_go=is_past))
    if not kept.count:
        stays = is_last or _is_last_of_producer(header, terms)
        return Retained(batch if not header.records_count else empty_batch(header), 0) if stays else GONE
    begins_horizon = kept.has_tombstone and horizon_ms is None
    if kept.count == header.records_count and not begins_horizon:
        return Retained(batch, kept.count)
    if begins_horizon:
        horizon_ms = terms.now_ms + terms.delete_retention_ms
    assert len(kept.flags) == header.records_count, f"{len(kept.flags)} of {header.records_count} records were judged"
    assert 0 < kept.count <= header.records_count, kept.count
    retained = RetainedBatch(header, horizon_ms)
    yield from _copy(header, batch, kept, retained)
    return Retained(retained.built(), kept.count)


@dataclass(slots=True)
class _Kept:
    """Which records of a batch stay."""

    flags: bytearray = field(default_factory=bytearray)  # one byte for each record
    count: int = 0
    has_tombstone: bool = False
    all_seen: list[Entry] | None = None  # all records of a batch that is one piece, as most are


def _look(header: BatchHeader, batch: Buffer, kept: _Kept, stays: Callable[[Entry], bool]) -> Iterator[int]:
    for piece in entries(header, batch):
        for record in piece:
            does_stay = stays(record)
            kept.flags.append(does_stay)
            kept.count += does_stay
            kept.has_tombstone |= does_stay and not record.has_value and not header.is_control
        if len(piece) == header.records_count:
            kept.all_seen = piece
        yield len(piece)


def _copy(header: BatchHeader, batch: Buffer, kept: _Kept, retained: RetainedBatch) -> Iterator[int]:
    flags = iter(kept.flags)
    for piece in entries(header, batch) if kept.all_seen is None else (kept.all_seen,):
        # The piece stands first in `zip`: a piece that ends takes no flag of the next piece.
        for record, stays in zip(piece, flags, strict=False):
            if stays:
                retained.add(record)
        yield len(piece)
    assert next(flags, None) is None, "more records were judged than there are to copy"


def _is_spent(header: BatchHeader, batch: Buffer, transactions: CleanedTransactions) -> bool:
    """Whether a batch is of an aborted transaction, or is the marker of a transaction that has nothing left."""
    if header.is_control:
        key = next((record.key for piece in entries(header, batch) for record in piece), None)
        kind = control_type(key) if header.records_count else None
        return transactions.marker_goes(header.producer_id, header.last_offset, kind, is_empty=not header.records_count)
    return header.is_transactional and transactions.is_aborted(header.producer_id, header.last_offset)


def _stays(record: Entry, terms: Terms, *, tombstones_go: bool) -> bool:
    if record.offset > terms.looked_to:
        return True
    if record.key is None or record.offset < terms.newest(record.key):
        return False
    return record.has_value or not tombstones_go


def _is_last_of_producer(header: BatchHeader, terms: Terms) -> bool:
    last = terms.last_of(header.producer_id) if header.has_producer_id else None
    if last is None:
        return False
    if last.offset >= 0:
        return header.last_offset == last.offset
    return header.is_control and header.producer_epoch == last.epoch
