"""Reads records of a topic for the page: the newest, or those from an offset or a time on, that match.

It joins no group and commits nothing. A search ends after a number of records, of bytes or of seconds, and its answer
says why: what it has not looked at may match. Records that a transaction has not committed are not shown.
"""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

import kafka.errors

from kavka_operator.domain.access import Security
from kavka_operator.domain.json_bytes import as_text
from kavka_operator.domain.moments import BadMomentError, milliseconds_of
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.connection import consumer
from kavka_operator.kafka.record_positions import begin_offsets, partitions_of
from kavka_operator.live_views.decoded import Decoder, as_json

COUNT_MAX: Final = 200
COUNT: Final = 50
SCANNED_MAX: Final = 100_000
SCANNED_BYTES_MAX: Final = 64 * 1024 * 1024
SECONDS_MAX: Final = 15.0
POLL_MS: Final = 200
CLOSE_MS: Final = 1_000
WINDOW_RECORDS: Final = 2
"""Of a partition, in the first window that is read backwards: records may be large."""
KEY_BYTES_MAX: Final = 2 * 1024
VALUE_BYTES_MAX: Final = 16 * 1024
HEADERS_MAX: Final = 20
HEADER_BYTES_MAX: Final = 512
SOUGHT_CHARACTERS_MAX: Final = 1_000
NEWEST, OLDEST, OFFSET, TIME = "newest", "oldest", "offset", "time"
PLACES: Final = (NEWEST, OLDEST, OFFSET, TIME)


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Bounds of a search: records and bytes that it looks at, seconds, bytes of an answer of a broker (None: the
    library's).
    """

    scanned_max: int = SCANNED_MAX
    bytes_max: int = SCANNED_BYTES_MAX
    seconds_max: float = SECONDS_MAX
    fetch_bytes_max: int | None = None


BOUNDS: Final = SearchBounds()

Document = dict[str, Any]
Found = list[tuple[tuple[int, int, int], Document]]
"""Records by their time, partition and offset."""


class BadQueryError(ValueError):
    """A query that says nothing; the message names the field and what to write."""


@dataclass(frozen=True, slots=True)
class Query:
    """The records that are asked for. `key` and `value` are texts that must be in those of a record.

    `offset` and `begin_ms` say where to begin, for `at` of that name; `partition` is None for all of them.
    """

    topic: str
    at: str = NEWEST
    offset: int | None = None
    begin_ms: int | None = None
    partition: int | None = None
    key: bytes = b""
    value: bytes = b""
    count: int = COUNT

    @property
    def is_search(self) -> bool:
        return bool(self.key or self.value)

    def matches(self, record: Any, decoder: Decoder | None = None) -> bool:
        """Whether a record has both texts, in its bytes or as they are decoded."""
        parts = ((self.key, record.key), (self.value, record.value))
        return all(sought in (data or b"") or (sought in _decoded_bytes(data, decoder)) for sought, data in parts)


def query_of(fields: Mapping[str, str]) -> Query:
    """The query that the fields of a form stand for; empty ones are left out. Raises BadQueryError."""
    at = fields.get("at") or NEWEST
    if at not in PLACES:
        raise BadQueryError(f"at: write one of {', '.join(PLACES)}")
    if not (topic := fields.get("topic", "")):
        raise BadQueryError("topic: name one")
    count = _number(fields, "count") or COUNT
    if count > COUNT_MAX:
        raise BadQueryError(f"count: at most {COUNT_MAX}")
    offset, begin_ms = None, None
    if at == OFFSET and (offset := _number(fields, "where")) is None:
        raise BadQueryError("where: write an offset, such as 120")
    if at == TIME:
        begin_ms = _moment(fields.get("where", ""))
    sought = [fields.get(name, "") for name in ("key", "value")]
    if any(len(text) > SOUGHT_CHARACTERS_MAX for text in sought):
        raise BadQueryError(f"key, value: at most {SOUGHT_CHARACTERS_MAX} characters")
    key, value = (text.encode(errors="surrogateescape") for text in sought)
    return Query(topic, at, offset, begin_ms, _number(fields, "partition"), key, value, count)


def _number(fields: Mapping[str, str], name: str) -> int | None:
    text = fields.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(2**63)):
        raise BadQueryError(f'{name}: "{text}" is not a number')
    return int(text)


def _moment(text: str) -> int:
    try:
        found = milliseconds_of(text.strip())
    except BadMomentError as error:
        raise BadQueryError(f"where: {error}") from error
    if found is None:
        raise BadQueryError("where: now has no records yet; write a time before it, such as -5m")
    return found


@dataclass(slots=True)
class Search:
    """The findings of a search so far. Pure."""

    query: Query
    decoder: Decoder | None = None
    scanned: int = 0
    scanned_bytes: int = 0
    scanned_max: int = SCANNED_MAX
    bytes_max: int = SCANNED_BYTES_MAX
    _matched: Counter[int] = field(default_factory=Counter)
    _found: Found = field(default_factory=list)

    def take(self, record: Any) -> None:
        """Look at a record; of the newest that match as many are kept as are asked for."""
        self.scanned += 1
        self.scanned_bytes += len(record.key or b"") + len(record.value or b"")
        if not self.query.matches(record, self.decoder):
            return
        self._matched[record.partition] += 1
        place = (record.timestamp, record.partition, record.offset)
        if len(self._found) < self.query.count:
            heapq.heappush(self._found, (place, document_of(record, self.decoder)))
        elif place > self._found[0][0]:
            heapq.heapreplace(self._found, (place, document_of(record, self.decoder)))

    def found_in(self, partition: int) -> int:
        """The records of a partition that match, also those that newer ones took the place of."""
        return self._matched[partition]

    @property
    def is_full(self) -> bool:
        """Whether as many records were found as are asked for."""
        return len(self._found) >= self.query.count

    @property
    def bound(self) -> str:
        """The bound that ends the search, by its name; empty where it may go on."""
        if self.scanned >= self.scanned_max:
            return "scanned"
        return "bytes" if self.scanned_bytes >= self.bytes_max else ""

    def found(self) -> Found:
        """The records that are found so far, for `forget`."""
        return list(self._found)

    def forget(self, found: Found) -> None:
        """Go back to what was found before."""
        self._found = found

    def records(self) -> list[Document]:
        """The records: of `newest` the newest first, otherwise in the order of their times."""
        return [found for _, found in sorted(self._found, key=lambda pair: pair[0], reverse=self.query.at == NEWEST)]


def document_of(record: Any, decoder: Decoder | None = None) -> Document:
    """A record for the page, with texts that are cut where they are too long."""
    headers = list(record.headers or ())
    key, value = Shown.of(record.key, KEY_BYTES_MAX, decoder), Shown.of(record.value, VALUE_BYTES_MAX, decoder)
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": key.data,
        "value": value.data,
        "keySchema": key.schema,
        "valueSchema": value.schema,
        "problems": list(dict.fromkeys(part.problem for part in (key, value) if part.problem)),
        "keyBytes": None if record.key is None else len(record.key),
        "valueBytes": None if record.value is None else len(record.value),
        "isCut": key.is_cut or value.is_cut,
        "headers": [[name[:HEADER_BYTES_MAX], _cut(value, HEADER_BYTES_MAX)] for name, value in headers[:HEADERS_MAX]],
        "headersOmitted": max(0, len(headers) - HEADERS_MAX),
    }


class Shown(NamedTuple):
    """A key or value as the page has it, the schema by which it is decoded, or the reason why it is not."""

    data: Any
    is_cut: bool
    schema: str = ""
    problem: str = ""

    @classmethod
    def of(cls, data: bytes | None, bytes_max: int, decoder: Decoder | None) -> Self:
        """Make what is shown of these bytes."""
        decoded = None if decoder is None else decoder.decode(data)
        if decoded is not None and not decoded.problem:
            data = as_json(decoded).encode(errors="replace")
        is_cut = len(data or b"") > bytes_max
        schema, problem = ("", "") if decoded is None else (decoded.schema, decoded.problem)
        return cls(_cut(data, bytes_max), is_cut, schema, problem)


def _decoded_bytes(data: bytes | None, decoder: Decoder | None) -> bytes:
    """The bytes that a text is sought in beside the record's own."""
    decoded = None if decoder is None else decoder.decode(data)
    return b"" if decoded is None or decoded.problem else as_json(decoded).encode(errors="replace")


def _cut(data: bytes | None, bytes_max: int) -> Any:
    """Bytes as JSON has them; of a text that is cut no half character is left."""
    if data is None or len(data) <= bytes_max:
        return as_text(data)
    cut = data[:bytes_max]
    for tail in range(4):
        if isinstance(text := as_text(cut[: bytes_max - tail]), str):
            return text
    return as_text(cut)


def read_records(
    bootstrap: str,
    security: Security,
    query: Query,
    is_left: Callable[[], bool] = lambda: False,
    decoder: Decoder | None = None,
    bounds: SearchBounds = BOUNDS,
) -> Document:
    """Read what the query asks for, until it `is_left` by the one who asked. `ended` says why it ended: count, end,
    scanned, bytes or seconds. Raises AdminError.
    """
    deadline = time.monotonic() + bounds.seconds_max
    client = consumer(bootstrap, security, bounds.fetch_bytes_max)
    try:
        numbers = () if query.partition is None else (query.partition,)
        ends = client.end_offsets(partitions_of(client, query.topic, numbers))
        search = Search(query, decoder, scanned_max=bounds.scanned_max, bytes_max=bounds.bytes_max)
        reader = Reader(client, search, lambda: is_left() or time.monotonic() >= deadline)
        ended = reader.read_newest(ends) if query.at == NEWEST else reader.read_from(ends)
    except kafka.errors.KafkaError as error:
        raise AdminError(f"{query.topic}: {error}") from error
    finally:
        client.close(timeout_ms=CLOSE_MS)
    return {"records": reader.search.records(), "scanned": reader.search.scanned, "ended": ended}


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads spans of partitions with a consumer for a search. Every method may raise KafkaError."""

    client: Any
    search: Search
    is_late: Callable[[], bool]
    window_records: int = WINDOW_RECORDS

    def read_from(self, ends: Mapping[Any, int]) -> str:
        """Read from where the query begins; returns why it ended."""
        query = self.search.query
        begins = begin_offsets(self.client, ends, query.offset, 0 if query.at == OLDEST else query.begin_ms)
        return self._read({partition: (begin, ends[partition]) for partition, begin in begins.items()}, ends_full=True)

    def read_newest(self, ends: Mapping[Any, int]) -> str:
        """Read backwards from the ends, in windows that grow, each as a whole, so that a bound leaves out what is
        oldest; returns why it ended. Offsets are no measure of records: compaction and transactions leave gaps.
        """
        query, search = self.search.query, self.search
        first = begin_offsets(self.client, ends, begin_ms=0)
        lows = dict(ends)
        size = self.window_records
        while True:
            left = [at for at, low in lows.items() if low > first[at] and search.found_in(at.partition) < query.count]
            if not left:
                return "count" if search.is_full else "end"
            size = max(1, min(size, (search.scanned_max - search.scanned) // len(left)))
            spans = {at: (max(first[at], lows[at] - size), lows[at]) for at in left}
            found = search.found()
            ended = self._read(spans, ends_full=False)
            if ended != "end":
                search.forget(found)  # a window is read forwards: what it lacks is newer than what it has found
                return ended
            if search.bound:
                return search.bound
            if query.is_search and search.is_full:
                return "count"
            lows |= {at: begin for at, (begin, _) in spans.items()}
            size *= 2

    def _read(self, spans: Mapping[Any, tuple[int, int]], *, ends_full: bool) -> str:
        """Read each span from its first offset up to the one before its last; returns why it ended. With `ends_full`
        it ends once enough is found.
        """
        left = {partition for partition, (begin, end) in spans.items() if begin < end}
        self.client.assign(sorted(left))
        self.client.resume(*left)  # of a partition that was assigned before, the library keeps that it is paused
        for partition in sorted(left):
            self.client.seek(partition, spans[partition][0])
        while left:
            if self.is_late():
                return "seconds"
            for partition, records in self.client.poll(timeout_ms=POLL_MS).items():
                for record in records if partition in left else ():
                    if record.offset >= spans[partition][1]:
                        break
                    if self.search.bound:
                        return self.search.bound
                    self.search.take(record)
                    if ends_full and self.search.is_full:
                        return "count"
            done = {partition for partition in left if self.client.position(partition) >= spans[partition][1]}
            if done:
                left -= done
                self.client.pause(*done)
        return "end"
