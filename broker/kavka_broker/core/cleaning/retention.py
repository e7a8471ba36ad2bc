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

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kavka_broker.core.cleaning.transactions import CleanedTransactions
from kavka_broker.protocol.records.batch import BatchHeader, Buffer
from kavka_broker.protocol.records.control import control_type
from kavka_broker.protocol.records.record import Record, read_records
from kavka_broker.protocol.records.retained import empty_batch, retained_batch


class LastOfProducer(NamedTuple):
    """The last record of an active producer, and its epoch. `offset` is -1 where only a marker is known of it."""

    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run goes by."""

    newest: Callable[[bytes], int]  # the newest offset of a key; -1 where the run has not met it
    looked_to: int  # the last offset that `newest` takes account of
    now_ms: int
    delete_retention_ms: int
    last_of: Callable[[int], LastOfProducer | None]  # of a producer by its id; None where it is not active


class Retained(NamedTuple):
    """What became of a batch: its bytes, None where it goes, and how many records it has then."""

    batch: Buffer | None
    records: int


GONE = Retained(None, 0)


def retain(
    header: BatchHeader, batch: Buffer, terms: Terms, transactions: CleanedTransactions, *, is_last: bool
) -> Retained:
    """What stays of one batch; `is_last` of its segment. Raises ProtocolViolation for records that are none."""
    records = read_records(batch)
    is_spent = _is_spent(header, records, transactions)
    horizon_ms = header.base_timestamp if header.has_delete_horizon else None
    if is_spent and (not header.is_control or (horizon_ms is not None and horizon_ms <= terms.now_ms)):
        kept: list[Record] = []
    elif header.is_control:
        kept = records
    else:
        is_past = horizon_ms is not None and horizon_ms <= terms.now_ms
        kept = [one for one in records if _stays(one, terms, tombstones_go=is_past)]
    if not kept:
        stays = is_last or _is_last_of_producer(header, terms)
        return Retained(batch if not header.records_count else empty_batch(header), 0) if stays else GONE
    needs_horizon = is_spent if header.is_control else any(one.value is None for one in kept)
    if needs_horizon and horizon_ms is None:
        return Retained(retained_batch(header, kept, terms.now_ms + terms.delete_retention_ms), len(kept))
    if len(kept) == len(records):
        return Retained(batch, len(kept))
    return Retained(retained_batch(header, kept, horizon_ms), len(kept))


def _is_spent(header: BatchHeader, records: list[Record], transactions: CleanedTransactions) -> bool:
    """Whether it is of an aborted transaction, or the marker of one that has nothing left."""
    if header.is_control:
        kind = control_type(records[0].key) if records else None
        return transactions.marker_goes(header.producer_id, header.last_offset, kind, is_empty=not records)
    return header.is_transactional and transactions.is_aborted(header.producer_id, header.last_offset)


def _stays(record: Record, terms: Terms, *, tombstones_go: bool) -> bool:
    if record.offset > terms.looked_to:
        return True
    if record.key is None or record.offset < terms.newest(record.key):
        return False
    return record.value is not None or not tombstones_go


def _is_last_of_producer(header: BatchHeader, terms: Terms) -> bool:
    last = terms.last_of(header.producer_id) if header.has_producer_id else None
    if last is None:
        return False
    if last.offset >= 0:
        return header.last_offset == last.offset
    return header.is_control and header.producer_epoch == last.epoch
