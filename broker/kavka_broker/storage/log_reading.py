"""Reading a log: whole batches from an offset on, and records by time.

A consumer reads on where it stopped. The log remembers where the last readers stopped, so that such a read needs no
search at all: a dictionary look-up, and a slice of the map. Whoever comes from elsewhere is served by the sparse index
and a walk over the headers behind the entry.

Batches that were there when a clean start opened the log are checked when they are first read (CRC): a disk may have
changed them while nobody looked.
"""

from bisect import bisect_right
from typing import Final, NamedTuple

from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.storage.log_segments import READERS_MAX, SegmentedLog
from kavka_broker.storage.segment import Found, Segment
from kavka_broker.storage.transaction_index import AbortedTransaction

log = get("storage")


class Chunk(NamedTuple):
    """Whole batches, ready to be sent. `end_offset` comes after them; -1 where there are none."""

    parts: list[memoryview]
    size_bytes: int
    end_offset: int = -1


EMPTY: Final = Chunk([], 0)


class ReadableLog(SegmentedLog):
    """A log that can be read."""

    def read(self, offset: int, bytes_max: int, *, upper_offset: int | None = None, at_least_one: bool = True) -> Chunk:
        """Whole batches below `upper_offset`, from the one that holds `offset`, at most `bytes_max` of one segment.

        With `at_least_one` the first batch comes also where it alone is larger. Raises OFFSET_OUT_OF_RANGE.
        """
        end_offset = self.log_end_offset
        upper = end_offset if upper_offset is None else min(upper_offset, end_offset)
        if not self.log_start_offset <= offset <= end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside {self.log_start_offset} to {end_offset} of {self.name}",
            )
        if offset >= upper:
            return EMPTY
        try:
            return self._read(offset, bytes_max, upper, at_least_one)
        except OSError as problem:
            raise self._storage_error("read", problem) from problem

    def _read(self, offset: int, bytes_max: int, upper: int, at_least_one: bool) -> Chunk:
        known = self._readers.get(offset)
        if known is None or (known[1] == known[0].file.size and known[0] is not self._active):
            known = self._locate(offset)
        segment, position = known
        limit, next_offset = self._limit(segment, upper)
        size = limit - position
        if size <= 0:
            return EMPTY
        if size > bytes_max:
            end, next_offset = segment.whole_batches(position, position + max(bytes_max, 0))
            if end == position:
                if not at_least_one:
                    return EMPTY
                first = segment.locate(next_offset)
                assert first is not None, f"{self.name}: no batch at {next_offset}"
                end, next_offset = position + first.size_bytes, first.last_offset + 1
            size = end - position
        if position < segment.unchecked_end and position + size > segment.unchecked_start:
            self._check(segment, position, size)
        self._remember(next_offset, segment, position + size)
        return Chunk([segment.file.read(position, size)], size, next_offset)

    def aborted_between(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `offset` up to `end_offset`."""
        found: list[AbortedTransaction] = []
        if not self.has_aborted:
            return found
        try:
            for segment in self.segments_from(offset):
                if segment.aborted.last_offset >= offset and segment.aborted.collect(offset, end_offset, found):
                    break
        except OSError as problem:
            raise self._storage_error("read", problem) from problem
        return found

    def _check(self, segment: Segment, position: int, size: int) -> None:
        damaged = segment.check(position, size)
        if damaged is not None:
            log.error("log.damaged", log=str(self.name), path=segment.file.path, offset=damaged)
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.name}: the batch at offset {damaged} has a wrong CRC")

    def _locate(self, offset: int) -> tuple[Segment, int]:
        index = max(0, bisect_right(self._bases, offset) - 1)
        while True:
            segment = self.segments[index]
            place = segment.locate(offset)
            if place is not None:
                return segment, place.position
            # Compaction may have left nothing between this offset and the next segment.
            index += 1
            if index == len(self.segments):
                return segment, segment.file.size

    def _limit(self, segment: Segment, upper: int) -> tuple[int, int]:
        """Up to which position `segment` may be read, and which offset comes after that."""
        if upper == self.log_end_offset:
            if segment is self._active:
                return segment.file.size, upper
            return segment.file.size, self._next_base(segment)
        if self._upper is None or self._upper[0] != upper:
            self._upper = (upper, *self._locate(upper))
        _, upper_segment, upper_position = self._upper
        if segment is upper_segment:
            return upper_position, upper
        if segment.base_offset > upper:
            return 0, upper
        return segment.file.size, self._next_base(segment)

    def _next_base(self, segment: Segment) -> int:
        return self._bases[bisect_right(self._bases, segment.base_offset)]

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        if len(self._readers) >= READERS_MAX:
            del self._readers[next(iter(self._readers))]
        self._readers[offset] = (segment, position)

    def find_by_timestamp(self, timestamp_ms: int) -> Found | None:
        """The first record whose timestamp is not below `timestamp_ms`."""
        for segment in self.segments:
            if segment.largest.timestamp_ms >= timestamp_ms:
                found = self._search(segment, timestamp_ms)
                if found is not None:
                    return found
        return None

    def max_timestamp(self) -> Found | None:
        """The record with the largest timestamp, the first of them."""
        youngest = max(self.segments, key=lambda segment: segment.largest.timestamp_ms)
        if youngest.largest.timestamp_ms < 0:
            return None
        return self._search(youngest, youngest.largest.timestamp_ms)

    def _search(self, segment: Segment, timestamp_ms: int) -> Found | None:
        try:
            return segment.find_by_timestamp(timestamp_ms, self.log_start_offset)
        except ProtocolViolation as problem:
            # Only headers are judged when a batch is taken; what a client put behind them shows here.
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.name}: {problem}") from None
        except OSError as problem:
            raise self._storage_error("read", problem) from problem
