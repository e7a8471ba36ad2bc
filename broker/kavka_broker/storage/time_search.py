"""Searching a log by time: for the first record that is not older, and for the youngest.

The time index leads near, headers say which batch it is, and its records are looked at some at a time until
the first that fits. That may be millions of records, so the work goes in slices (`slices`). Between two of them the
log may be cut, and retention or the cleaner may take a segment: then what was looked at does not count.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.records.scan import Seen, scan
from kavka_broker.storage.log import Log
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.time_index_check import confirms

#: Of a slice: looking at a header, unpacking some records, finding the place to begin.
HEADER_COST: Final = 4
UNPACKING_COST: Final = 150
SEARCH_COST: Final = 50


class Found(NamedTuple):
    """A record found by time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class _Gone(Exception):
    """A segment that was being searched is not part of the log any more."""


def find_by_timestamp(log: Log, timestamp_ms: int, cost: Cost) -> Work[Found | None]:
    """The first record whose timestamp is not below `timestamp_ms`. Raises BrokerError: CORRUPT_MESSAGE, a disk's
    error, NOT_LEADER_OR_FOLLOWER where the log was cut or closed meanwhile.
    """
    while True:
        try:
            return (yield from _first(log, timestamp_ms, cost))
        except _Gone:
            continue


def max_timestamp(log: Log, cost: Cost) -> Work[Found | None]:
    """The record with the largest timestamp, the first of them. Raises as `find_by_timestamp`."""
    while True:
        youngest = max(log.segments, key=lambda segment: segment.largest.timestamp_ms)
        if youngest.largest.timestamp_ms < 0:
            return None
        try:
            return (yield from _Search(log, youngest, youngest.largest.timestamp_ms, cost).run())
        except _Gone:
            continue


def _first(log: Log, timestamp_ms: int, cost: Cost) -> Work[Found | None]:
    for segment in list(log.segments):
        if segment.largest.timestamp_ms >= timestamp_ms:
            found = yield from _Search(log, segment, timestamp_ms, cost).run()
            if found is not None:
                return found
    return None


class _Search:
    """In one segment."""

    def __init__(self, log: Log, segment: Segment, timestamp_ms: int, cost: Cost) -> None:
        self._log = log
        self._segment = segment
        assert segment.largest.timestamp_ms >= timestamp_ms, "there is nothing to be found"
        self._timestamp_ms = timestamp_ms
        self._cost = cost
        self._truncations = log.truncations

    def run(self) -> Work[Found | None]:
        """Search. Raises BrokerError where the records cannot be read."""
        try:
            return (yield from self._batches())
        except ProtocolViolation as problem:
            # Only headers are judged when a batch is taken; what a client put behind them shows here.
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self._log.name}: {problem}") from None
        except OSError as problem:
            raise self._log.reader.told(self._segment.base_offset, problem) from problem

    def _batches(self) -> Work[Found | None]:
        if self._segment not in self._log.segments:
            raise _Gone
        start_offset, timestamp_ms = self._log.log_start_offset, self._timestamp_ms
        yield from self._spend(SEARCH_COST)
        for position, header in _batches_from(self._segment, start_offset, timestamp_ms):
            if header.max_timestamp >= timestamp_ms and header.last_offset >= start_offset:
                seen = yield from self._records(scan(header, self._segment.batch_at(position, header)), start_offset)
                assert seen is None or seen[0] >= start_offset
                if seen is not None:
                    return Found(seen[0], seen[1], header.leader_epoch)
            yield from self._spend(HEADER_COST)
        return None

    def _records(self, pieces: Iterator[list[Seen]], start_offset: int) -> Work[Seen | None]:
        timestamp_ms = self._timestamp_ms
        for some in pieces:
            yield from self._spend(UNPACKING_COST + len(some))
            for seen in some:
                if seen[1] >= timestamp_ms and seen[0] >= start_offset:
                    return seen
        return None

    def _spend(self, cost: int) -> Work[None]:
        if not self._cost.add(cost):
            return
        yield
        if self._log.is_closed or self._log.truncations != self._truncations:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self._segment not in self._log.segments:
            raise _Gone


def _batches_from(segment: Segment, offset: int, timestamp_ms: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of the batches from where the first record at or after both may be."""
    begun = segment.locate(max(offset, _offset_before(segment, timestamp_ms)))
    return segment.batches(segment.file.size if begun is None else begun.position)


def _offset_before(segment: Segment, timestamp_ms: int) -> int:
    """Where the time index says to begin, if the log bears it out; otherwise the segment's start."""
    entry = segment.times.entry_before(timestamp_ms)
    return segment.base_offset if entry is None or not confirms(segment, entry) else entry.offset
