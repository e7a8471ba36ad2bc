"""A trail as brokers write it, from happenings with chosen times, and a lake that has taken it in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Range, ingest
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings, Table, ask
from kavka_broker.core.audit.chain import Chain, Entry
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.events import Happening, Tally
from kavka_broker.core.audit.ocsf import event_of
from kavka_broker.protocol.records.record import put_varint

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000
CLUSTER = "abcdefghijklmnopqrstuv"
ROWS_MAX = 100_000


class Record(NamedTuple):
    """A record of the topic."""

    partition: int
    offset: int
    headers: Sequence[tuple[str, bytes | None]]
    value: bytes | None

    @property
    def packed_headers(self) -> bytes:
        return packed(self.headers)


def packed(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Headers as they stand in a batch."""
    found = bytearray()
    put_varint(found, len(headers))
    for name, value in headers:
        for part in (name.encode(errors="surrogatepass"), value):
            put_varint(found, -1 if part is None else len(part))
            found += part or b""
    return bytes(found)


@dataclass(frozen=True)
class Single:
    """A batch of one record."""

    record: Record

    @property
    def base_offset(self) -> int:
        return self.record.offset

    @property
    def count(self) -> int:
        return 1

    def packed(self) -> bytes:
        value, body = self.record.value, bytearray(3)  # no attributes, the time and the place of the first
        for size in (-1, -1 if value is None else len(value)):
            put_varint(body, size)
        body += (value or b"") + self.record.packed_headers
        whole = bytearray()
        put_varint(whole, len(body))
        return bytes(whole + body)

    def record_at(self, packed: bytes, at: int) -> tuple[Record, int]:
        assert at == 0
        return self.record, len(packed)

    def records(self) -> list[Record]:
        return [self.record]


class Numbered(Protocol):
    """A record with an offset."""

    @property
    def offset(self) -> int: ...


class Deleting(Protocol):
    """A topic that retention deletes from while it is read."""

    begins: dict[int, int]
    cuts: dict[int, tuple[int, int]]


N = TypeVar("N", bound=Numbered)


def given(topic: Deleting, partition: int, records: Iterable[N]) -> Iterator[N]:
    """The records that are there when their turn comes."""
    count = 0
    for record in records:
        if (cut := topic.cuts.get(partition)) is not None and cut[0] == count:
            topic.begins[partition] = cut[1]
        if record.offset >= topic.begins.get(partition, 0):
            count += 1
            yield record


@dataclass
class Kept:
    """An audit topic in memory. `begins` are offsets before which records were deleted; `cuts` say by partition that
    when so many records were given, those before an offset are deleted.
    """

    topic_id: str = "first"
    records: dict[int, list[Record]] = field(default_factory=dict)
    begins: dict[int, int] = field(default_factory=dict)
    cuts: dict[int, tuple[int, int]] = field(default_factory=dict)

    def ranges(self) -> list[Range]:
        return [(index, self.begins.get(index, 0), len(found)) for index, found in sorted(self.records.items())]

    def begin(self, partition: int) -> int:
        return self.begins.get(partition, 0)

    def batches(self, partition: int, first: int, until: int) -> Iterator[Single]:
        for record in given(self, partition, self.records[partition][first:until]):
            yield Single(record)

    def add(self, partition: int, headers: Sequence[tuple[str, bytes | None]], value: bytes | None) -> None:
        records = self.records.setdefault(partition, [])
        records.append(Record(partition, len(records), headers, value))

    def write(self, partition: int, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.add(partition, headers_of(entry), entry.value)


class At(NamedTuple):
    """Something that happened, when, and how often."""

    happening: Happening
    start_ms: int = NOW_MS - 60_000
    end_ms: int = NOW_MS
    times: int = 1


def chain_of(node: int, happenings: Iterable[At], epoch: int = 1) -> tuple[Chain, list[Entry]]:
    """A chain that tells this; it can be gone on with."""
    chain = Chain(f"{node}-{epoch}")
    entries = [chain.head(0)]
    for found in happenings:
        uid = f"{chain.source}-{chain.sequence}"
        entries.append(chain.event(event_of(Tally(found.happening, found.times, *found[1:3]), uid), found.end_ms))
    return chain, entries


def taken_in(directory: Path, trail: Kept, rows_max: int | None = None) -> tuple[Lake, Ingested]:
    """A lake that has taken in the trail, with so many rows a file."""
    lake = Lake(directory)
    with lake.held(CLUSTER):
        so_far = [Ingested(), *ingest(lake, trail, rows_max=rows_max)][-1]
    assert so_far.files or not so_far.records
    return lake, so_far


def answers(
    directory: Path,
    trail: Kept,
    tables: Mapping[str, Sequence[Mapping[str, object]]] | None = None,
    settings: Settings | None = None,
) -> dict[str, Table]:
    """The answers that a lake gives."""
    lake, _ = taken_in(directory, trail)
    keep(lake, Snapshot(CLUSTER, tables or {}))
    return ask(lake, settings or Settings(NOW_MS), ROWS_MAX)
