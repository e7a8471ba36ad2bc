"""One cleaning of one log, in slices.

It goes through the log three times. First over all headers, to learn which transactions were aborted: the batches say
it, whatever became of the indexes. Then over the dirty part, to learn the newest offset of each key; a map that is full
ends the dirty part there. Then over everything up to there, and writes what stays: neighbours that are small enough
become one segment.

What is written is synced, under names that a start removes. It takes the place of what was read in one step of the
loop (`segment_swap.put_in_place`), group by group, the oldest first: so an old value is gone before the tombstone
that has taken its place.

The files are read by handles of their own. A thread runs `work` from slice to slice, the loop does what a slice asks
for, and looks before each whether the log is still what it was (`is_outdated`). A batch that is not sound ends the
cleaning, and nothing of the log has changed.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from kavka_broker.core.cleaning.retention import LastOfProducer, Terms, retain
from kavka_broker.core.cleaning.selection import DirtyRange, SegmentView, grouped
from kavka_broker.core.cleaning.transactions import CleanedTransactions
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.core.partition.transactions import Ended
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, BatchHeader, read_header, split_batches
from kavka_broker.protocol.records.control import control_type
from kavka_broker.protocol.records.entries import entries
from kavka_broker.protocol.records.record import read_records
from kavka_broker.storage.batch_walk import ANY_OFFSET, LONG_WINDOW_BYTES, Damage, headers, what_is_wrong
from kavka_broker.storage.cleaning.offset_map import OffsetMap
from kavka_broker.storage.cleaning.segment_swap import discard_unfinished
from kavka_broker.storage.disk import File
from kavka_broker.storage.disk_errors import is_passing
from kavka_broker.storage.file_names import CLEANED
from kavka_broker.storage.log import Log
from kavka_broker.storage.producer_walk import entry_of, note_batch
from kavka_broker.storage.segment import Segment

Found = TypeVar("Found")

#: About a millisecond's work, after which the loop may have its turn.
RECORDS_PER_SLICE: Final = 500
BYTES_PER_SLICE: Final = 64 * 1024
#: The least records that a piece of a batch counts as, except for the first piece.
RECORDS_PER_PIECE_MIN: Final = 50
#: Of `log.cleaner.io.buffer.size` half is Kafka's for reading; a batch that is larger is read as a whole.
READ_BYTES_MIN: Final = 4 * 1024
#: A replacement renames all files of a group, on the loop.
SEGMENTS_PER_GROUP_MAX: Final = 100


class Uncleanable(Exception):
    """The log holds a batch that cannot be read. The message says what and where."""


class Outdated(Exception):
    """The log was cut or closed during the cleaning, which is given up."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes that were read and written since the last slice."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """A `cleaned` segment, written and synced, that is to take the place of these segments."""

    old: list[Segment]
    cleaned: Segment


@dataclass(frozen=True, slots=True)
class Bounds:
    """Memory for the offset map, and how much of a file a cleaning looks at together."""

    buffer_bytes_max: int
    load_factor: float
    read_bytes_max: int = LONG_WINDOW_BYTES
    slice_bytes: int = BYTES_PER_SLICE


@dataclass(slots=True)
class Figures:
    """Figures of a cleaning."""

    bytes_read: int = 0  # in all walks
    bytes_cleaned: int = 0  # of the replaced segments
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    map_utilization: float = 0.0
    end_offset: int = 0


class Cleaning:
    """A cleaning of one log, made on the loop from the log as it is now."""

    def __init__(self, log: Log, dirty: DirtyRange, stable_offset: int, bounds: Bounds, now_ms: int) -> None:
        assert dirty.first_dirty_offset <= dirty.first_uncleanable_offset <= log.log_end_offset
        assert stable_offset <= log.log_end_offset
        self.log = log
        self.dirty = dirty
        self.figures = Figures()
        # A cleaning walks over everything twice, and over the dirty part once more.
        self._total_bytes = 2 * dirty.clean_bytes + 3 * dirty.cleanable_bytes
        self.bounds = bounds
        self._now_ms = now_ms
        self._config = log.config
        self._stable_offset = stable_offset
        self._segments = list(log.segments)
        self._truncations = log.truncations
        self._pending_bytes = self._pending_records = 0

    @property
    def is_outdated(self) -> bool:
        log = self.log
        return log.truncations != self._truncations or log.is_closed or log.is_failed or not log.config.compacts

    @property
    def progress(self) -> float:
        """The share of the cleaning that is done."""
        return min(1.0, self.figures.bytes_read / max(1, self._total_bytes))

    def work(self) -> Generator[Slice | Replacement]:
        """Do the cleaning in slices. Raises Uncleanable, Outdated, and OSError where the disk refuses a write."""
        keys_max = self.dirty.first_uncleanable_offset - self.dirty.first_dirty_offset
        newest = OffsetMap(self.bounds.buffer_bytes_max, self.bounds.load_factor, keys_max)
        try:
            aborted: list[Ended] = []
            yield from self._find_aborted(aborted)
            yield from self._find_newest(newest, CleanedTransactions(aborted))
            self.figures.map_utilization = newest.utilization
            yield from self._write(newest, CleanedTransactions(aborted))
            self.figures.end_offset = newest.latest_offset + 1
            assert self.figures.end_offset <= self.dirty.first_uncleanable_offset
            assert self.figures.records_kept <= self.figures.records_read, self.figures
        finally:
            newest.close()

    # --- the three walks ----------------------------------------------------------------------------------------

    def _find_aborted(self, aborted: list[Ended]) -> Iterator[Slice]:
        """Find the aborted transactions that have records left."""
        producers = ProducerStates()
        for segment in self._segments:
            if segment.base_offset >= self._stable_offset:
                return
            with _reading(segment) as file:
                for header, batch in _guarded(_of_transactions(file)):
                    if header.is_transactional:
                        aborted.extend(_noted(producers, header, batch))
                    yield from self._slice(header.size_bytes, 0)
                    if header.next_offset >= self._stable_offset:
                        return

    def _find_newest(self, newest: OffsetMap, transactions: CleanedTransactions) -> Iterator[Slice]:
        """Find the newest offset of each key in the dirty part, as far as there is room."""
        for index, segment in enumerate(self._segments):
            if segment.base_offset >= self.dirty.first_uncleanable_offset:
                break
            assert segment is not self._segments[-1], (
                f"the active segment, from {segment.base_offset} on, is not cleaned"
            )
            end_offset = self._segments[index + 1].base_offset
            if end_offset <= self.dirty.first_dirty_offset:
                continue
            for header, batch in self._batches(segment):
                noting = _note_newest(newest, header, batch, transactions, self.dirty.first_dirty_offset)
                if not (yield from self._in_pieces(header, noting)):
                    return
                yield from self._slice(len(batch), 0)
            # The dirty part may end in a gap.
            assert newest.latest_offset < end_offset
            newest.latest_offset = end_offset - 1

    def _write(self, newest: OffsetMap, transactions: CleanedTransactions) -> Iterator[Slice | Replacement]:
        inside = [segment for segment in self._segments if segment.base_offset <= newest.latest_offset]
        end_offset = self._segments[len(inside)].base_offset
        assert end_offset > newest.latest_offset, (
            f"the run has looked to {newest.latest_offset}, and ends at {end_offset}"
        )
        terms = Terms(
            newest=newest.get,
            looked_to=newest.latest_offset,
            now_ms=self._now_ms,
            delete_retention_ms=self._config.delete_retention_ms,
            last_of=self._last_of,
        )
        config = self._config
        for group in grouped(
            [view(segment) for segment in inside],
            end_offset,
            bytes_max=config.segment_bytes_max,
            index_bytes_max=config.segment_index_bytes,
            group_max=SEGMENTS_PER_GROUP_MAX,
        ):
            yield from self._write_group([inside[index] for index in group], terms, transactions)

    def _last_of(self, producer_id: int) -> LastOfProducer | None:
        """Return the last record of a producer in the log now. The loop may just be noting its next one."""
        producer = self.log.producers.get(producer_id)
        if producer is None:
            return None
        return LastOfProducer(next((batch.last_offset for batch in producer.batches[-1:]), -1), producer.epoch)

    def _write_group(
        self, old: list[Segment], terms: Terms, transactions: CleanedTransactions
    ) -> Iterator[Slice | Replacement]:
        log, base_offset = self.log, old[0].base_offset
        discard_unfinished(log.disk, log.directory, base_offset)
        cleaned = log.segments.make(base_offset, old[0].created_ms, suffix=CLEANED)
        try:
            for segment in old:
                yield from self._write_segment(segment, cleaned, terms, transactions, is_last=segment is old[-1])
            for ended in transactions.kept:
                cleaned.aborted.append(entry_of(ended))
            transactions.kept.clear()
            cleaned.finish()
            cleaned.sync()
            yield Replacement(old, cleaned)
            log.disk.sync_directory(log.directory)
        finally:
            cleaned.close()
            discard_unfinished(log.disk, log.directory, base_offset)

    def _write_segment(
        self, segment: Segment, cleaned: Segment, terms: Terms, transactions: CleanedTransactions, *, is_last: bool
    ) -> Iterator[Slice]:
        held: tuple[BatchHeader, memoryview] | None = None
        for found in self._batches(segment):
            if held is not None:
                yield from self._retain(*held, cleaned, terms, transactions, is_last=False)
            held = found
        if held is not None:
            yield from self._retain(*held, cleaned, terms, transactions, is_last=is_last)

    def _retain(
        self,
        header: BatchHeader,
        batch: memoryview,
        cleaned: Segment,
        terms: Terms,
        transactions: CleanedTransactions,
        *,
        is_last: bool,
    ) -> Iterator[Slice]:
        figures, written_bytes = self.figures, 0
        assert header.size_bytes == len(batch)
        kept = yield from self._in_pieces(header, retain(header, batch, terms, transactions, is_last=is_last))
        assert 0 <= kept.records <= header.records_count
        assert kept.batch is not None or not kept.records, f"{kept.records} records stay without their batch"
        if kept.batch is not None:
            written_bytes = len(kept.batch)
            cleaned.append(kept.batch, header.last_offset, read_header(kept.batch).max_timestamp)
        figures.bytes_cleaned += len(batch)
        figures.records_read += header.records_count
        figures.records_kept += kept.records
        figures.bytes_written += written_bytes
        yield from self._slice(len(batch), 0, written_bytes)

    # --- slices -------------------------------------------------------------------------------------------------

    def _batches(self, segment: Segment) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield all batches of a segment, each of them sound. Raises Uncleanable, and Outdated where it is gone."""
        with _reading(segment) as file:
            read_bytes_max = max(READ_BYTES_MIN, self.bounds.read_bytes_max)
            yield from _guarded(_sound_batches(file, segment.base_offset, read_bytes_max))

    def _in_pieces(self, header: BatchHeader, work: Generator[int, None, Found]) -> Generator[Slice, None, Found]:
        """Do the work on one batch, in pieces of a number of records; returns its result. Raises Uncleanable."""
        records_min = 0
        while True:
            try:
                records = next(work)
            except StopIteration as done:
                found: Found = done.value
                return found
            except ProtocolViolation as problem:
                raise Uncleanable(f"the batch at offset {header.base_offset}: {problem}") from problem
            yield from self._slice(0, max(records, records_min))
            records_min = RECORDS_PER_PIECE_MIN

    def _slice(self, read_bytes: int, records: int, written_bytes: int = 0) -> Iterator[Slice]:
        """Yield an end of the slice where enough was read, written or checked."""
        assert read_bytes >= 0 <= written_bytes
        self.figures.bytes_read += read_bytes
        self._pending_bytes += read_bytes + written_bytes
        self._pending_records += records
        if self._pending_bytes >= self.bounds.slice_bytes or self._pending_records >= RECORDS_PER_SLICE:
            size_bytes, self._pending_bytes, self._pending_records = self._pending_bytes, 0, 0
            yield Slice(size_bytes)


def view(segment: Segment) -> SegmentView:
    """Return what a choice has to know of a segment."""
    return SegmentView(
        segment.base_offset,
        segment.size_bytes,
        max(len(segment.offsets) * segment.offsets.ENTRY.size, len(segment.times) * segment.times.ENTRY.size),
        segment.first_timestamp_ms,
        segment.largest.timestamp_ms,
    )


def _noted(producers: ProducerStates, header: BatchHeader, batch: memoryview | None) -> list[Ended]:
    """Return the transaction that a batch has aborted, if any. Raises Uncleanable for a malformed marker."""
    try:
        ended = note_batch(producers, header, batch or memoryview(b""))
    except ProtocolViolation as problem:
        raise Uncleanable(f"the marker at offset {header.base_offset}: {problem}") from problem
    producers.transactions.replicated(header.next_offset)
    return [ended] if ended is not None and ended.is_aborted else []


def _note_newest(
    newest: OffsetMap, header: BatchHeader, batch: memoryview, transactions: CleanedTransactions, first_dirty: int
) -> Generator[int, None, bool]:
    """Take note of a batch, piece by piece; whether all of it found room."""
    if header.is_control:
        records = read_records(batch)
        kind = control_type(records[0].key) if records else None
        transactions.marker_goes(header.producer_id, header.last_offset, kind, is_empty=not records)
    elif not (header.is_transactional and transactions.is_aborted(header.producer_id, header.last_offset)):
        for piece in entries(header, batch) if header.last_offset >= first_dirty else ():
            for record in piece:
                if record.key is None or record.offset < first_dirty:
                    continue
                if newest.is_full:
                    return False
                newest.put(record.key, record.offset)
            yield len(piece)
    newest.latest_offset = max(newest.latest_offset, header.last_offset)
    return True


@contextmanager
def _reading(segment: Segment) -> Iterator[File]:
    try:
        file = segment.open_to_read()
    except FileNotFoundError as problem:
        raise Outdated(str(problem)) from problem
    try:
        yield file
    finally:
        file.close()


def _guarded(found: Iterator[Found]) -> Iterator[Found]:
    """Pass the batches on. Raises Uncleanable for an unreadable batch, Outdated for a shorter file, and OSError."""
    try:
        yield from found
    except ProtocolViolation as problem:
        raise Uncleanable(str(problem)) from problem
    except ValueError as problem:  # the file has become shorter
        raise Outdated(str(problem)) from problem
    except OSError as problem:
        if is_passing(problem):
            raise
        raise Uncleanable(str(problem)) from problem


def _of_transactions(file: File) -> Iterator[tuple[BatchHeader, memoryview | None]]:
    """Yield all headers, with the batches of markers."""
    for position, header in headers(file, 0):
        is_marker = header.is_control and header.has_producer_id
        yield header, file.read(position, header.size_bytes) if is_marker else None


def _sound_batches(file: File, base_offset: int, window_bytes: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    position, next_offset = 0, base_offset
    while position < file.size:
        window = file.read(position, min(window_bytes, file.size - position))
        size_bytes = _first_size(file, window, position, next_offset)
        if size_bytes > len(window):
            window = file.read(position, size_bytes)
        for header, batch in split_batches(window):
            reason = what_is_wrong(header, batch, next_offset, ANY_OFFSET)
            if reason:
                raise Damage(file.path, position, next_offset, reason)
            yield header, batch
            position, next_offset = position + len(batch), header.next_offset


def _first_size(file: File, window: memoryview, position: int, next_offset: int) -> int:
    if len(window) < HEADER_BYTES:
        raise Damage(file.path, position, next_offset, f"{len(window)} bytes are no header")
    size_bytes = read_header(window).size_bytes
    if not HEADER_BYTES <= size_bytes <= file.size - position:
        raise Damage(file.path, position, next_offset, f"a batch of {size_bytes} bytes")
    return size_bytes
