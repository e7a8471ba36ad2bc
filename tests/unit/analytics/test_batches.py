"""What is found in whole batches is what taking each record apart gives."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.record import MemoryRecords

from kavka_audit.lake.batch_parser import FORMS
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.ingest import EVENTS
from kavka_audit.lake.partition_reader import Taking
from kavka_audit.lake.rows import row_of
from kavka_broker.core.audit.events import Happening, LoggedIn
from kavka_broker.core.audit.usage import Use
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record as Sent
from kavka_broker.protocol.records.record import build_batch
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.records import PackedBatch, PackedRecord, _PackedRecords
from tests.unit.analytics.test_fast_parser import HAPPENINGS, ODD, damaged, records_of
from tests.unit.analytics.trail import Record

PARTITION = 3
BASE = 1_000
SPACED: list[Happening] = [
    Use("User: bob ", " ", " , ", "READ", "'a\\tb'", 1, None),
    Use("User:NULL", "", "#", "READ", "NULL", 1, 1),
    LoggedIn(" ", "", " "),
    LoggedIn("", "10.0.0.1", ""),
]


def key_of(record: Record) -> bytes | None:
    """The key that a broker gives a record: the source of its chain."""
    source = dict(record.headers).get("ce_source")
    return None if source is None else source.removeprefix(b"kavka:")


def batch_of(
    records: Sequence[Record],
    compression: Compression = Compression.LZ4,
    key_of: Callable[[Record], bytes | None] = key_of,
) -> PackedBatch:
    """The records as a batch that a consumer fetches."""
    sent = [
        Sent(-1, 5 + place, key_of(record), record.value, [*record.headers]) for place, record in enumerate(records)
    ]
    data = build_batch(sent, base_offset=BASE, compression=compression)
    (batch,) = _PackedRecords(0, TopicPartition("t", PARTITION), MemoryRecords(bytes(data))).take()
    assert isinstance(batch, PackedBatch)
    return batch


@dataclass
class Taken:
    """What a file of the lake has, and what its making has counted."""

    rows: list[tuple[Any, ...]]
    records: int
    dead: int
    missed: int
    following: int


def taken(directory: Path, batches: Sequence[Any], first: int = BASE, until: int = BASE + 10_000) -> Taken:
    part = directory / "taken.parquet"
    with Taking(EVENTS, PARTITION, first, lambda _: 0, part) as taking:
        for batch in batches:
            taking.add(batch, until)
        taking.write()
    rows = duckdb.read_parquet(str(part)).order('"offset"')
    assert (rows.columns, [str(kind) for kind in rows.types]) == ([*ENTRIES], [*ENTRIES.values()])
    assert [file.name for file in directory.iterdir()] == [part.name]
    return Taken(rows.fetchall(), taking.records, taking.dead, taking.missed, taking.following)


def expected(records: Sequence[PackedRecord]) -> list[tuple[Any, ...]]:
    """The rows of records that are taken apart."""
    return [tuple(row_of(record).get(name) for name in ENTRIES) for record in records]


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("taken")


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP, Compression.LZ4])
def test_rows_are_those_of_records_taken_apart(directory: Path, compression: Compression) -> None:
    records = records_of([*HAPPENINGS, *ODD, *SPACED, *HAPPENINGS])
    batch = batch_of(records, compression)
    found = taken(directory, [batch])
    assert found.rows == expected(batch.records())
    assert (found.records, found.dead, found.following) == (len(records), 0, BASE + len(records))


@pytest.mark.parametrize("key", [None, b"", b"1", b"1-", b"x-1", b"1-1" * 30, b"123456789-12345678901234567890"])
def test_records_with_any_key_have_the_rows_that_parsing_gives(directory: Path, key: bytes | None) -> None:
    batch = batch_of(records_of(HAPPENINGS), key_of=lambda _: key)
    assert taken(directory, [batch]).rows == expected(batch.records())


@pytest.mark.parametrize("key_of", [key_of, lambda _: None], ids=["the key of a broker", "no key"])
def test_most_events_are_found_in_whole_batches(key_of: Callable[[Record], bytes | None]) -> None:
    """All but those that are throttled. None of a broker's was, as its records have keys."""
    batch = batch_of(records_of(HAPPENINGS), key_of=key_of)
    packed, at, index, left = batch.packed(), 0, 0, []
    while index < batch.count:
        begun = index
        for form in FORMS:
            at, index = form.run(packed, (at, index), batch.count, BASE, [])
        if index == begun:
            record, at = batch.record_at(packed, at)
            left.append(json.loads(record.value or b""))
            index += 1
    assert [event["disposition_id"] for event in left] == [14, 14, 14]


@pytest.mark.parametrize(("first", "until"), [(0, 4), (2, 9), (3, 4), (0, 18), (5, 5), (20, 30)])
def test_records_outside_of_the_piece_are_left_out(directory: Path, first: int, until: int) -> None:
    batch = batch_of(records_of(HAPPENINGS))
    assert batch.count == 14
    found = taken(directory, [batch], BASE + first, BASE + until)
    assert found.rows == expected(batch.records()[first:until])


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(records_of(HAPPENINGS)), st.booleans()), min_size=1, max_size=8), st.randoms()
)
def test_damaged_events_have_the_rows_that_parsing_gives(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[Record, bool]], chance: random.Random
) -> None:
    records = [
        record._replace(value=damaged(record.value or b"", chance)) if is_damaged else record
        for record, is_damaged in drawn
    ]
    batch = batch_of(records)
    found = taken(tmp_path_factory.mktemp("taken"), [batch])
    assert found.rows == expected(batch.records())
    assert found.dead == sum(row[2] == "dead" for row in found.rows)


class Spoilt(PackedBatch):
    """A batch whose bytes are others once it is unpacked."""

    def __init__(self, batch: PackedBatch, packed: bytes) -> None:
        super().__init__(batch.topic, PARTITION, batch._batch)
        self._packed = packed

    def packed(self) -> bytes:
        return self._packed


@settings(max_examples=30, deadline=None)
@example(random.Random(1))
@given(st.randoms())
def test_bytes_that_are_no_records_are_told_or_read_as_they_stand(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random
) -> None:
    whole = batch_of(records_of(HAPPENINGS[:3]))
    check_spoilt(tmp_path_factory.mktemp("taken"), Spoilt(whole, damaged(whole.packed(), chance)))


def check_spoilt(directory: Path, batch: Spoilt) -> None:
    """What is malformed is told, and the rest is read. Records whose offsets are no longer in a row come in another
    order, and may be taken for such as came before.
    """
    try:
        wanted = expected(batch.records())
    except AdminError:
        with pytest.raises(AdminError):
            taken(directory, [batch])
        return
    found = [row[2:] for row in taken(directory, [batch]).rows]
    read = [row[2:] for row in wanted]
    if [row[1] for row in wanted] == list(range(BASE, BASE + len(wanted))):
        assert found == read
    else:
        assert not Counter(found) - Counter(read)


@pytest.mark.parametrize("delta", [24, -1, 1])
def test_a_record_with_the_offset_of_another_makes_no_rows_of_its_own(directory: Path, delta: int) -> None:
    whole = batch_of(records_of(HAPPENINGS[:3]))
    packed = whole.packed()
    assert packed[4] == 0, "behind its size of two bytes, its attributes, and its time, the first record has offset 0"
    zigzag = 2 * delta if delta >= 0 else -2 * delta - 1
    spoilt = Spoilt(whole, packed[:4] + bytes([zigzag]) + packed[5:])
    assert spoilt.records()[0].offset == BASE + delta
    check_spoilt(directory, spoilt)
