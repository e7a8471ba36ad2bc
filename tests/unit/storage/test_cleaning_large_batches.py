"""A small batch of very much: a cleaning goes through it in slices, with the memory of a few pieces."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kavka_broker.core.cleaning import retention
from kavka_broker.protocol.records.batch import BatchHeader, Buffer
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.entries import Entry, entries
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.cleaning import run
from kavka_broker.storage.cleaning.run import Bounds, Replacement
from kavka_broker.storage.cleaning.segment_swap import put_in_place
from kavka_broker.storage.log import Log, Origin
from tests.unit.storage.cleaning import COMPACTED, begin, put, roll
from tests.unit.storage.support import NOW_MS, open_log, values

MEBIBYTE = 1 << 20
RECORDS, KEYS, VALUE_BYTES = 4_000, 100, 4_096
MAP_BYTES = MEBIBYTE


def written() -> Log:
    """16 MB in a batch of some kilobytes, of which a hundred records stay."""
    log = open_log(config=replace(COMPACTED, internal_segment_bytes=MEBIBYTE))
    records = [(b"%d" % (number % KEYS), b"x" * VALUE_BYTES) for number in range(RECORDS)]
    large = build_batch(records, timestamp_ms=NOW_MS, compression=Compression.ZSTD)
    log.append_as_leader(memoryview(large), 0, NOW_MS, Origin.COORDINATOR)
    put(log, ("0", None))
    roll(log)
    return log


def test_it_takes_the_memory_of_the_map_and_a_few_pieces() -> None:
    log = written()
    assert log.size_bytes < MEBIBYTE // 4
    bounds = Bounds(buffer_bytes_max=MAP_BYTES, load_factor=0.9)
    cleaning = begin(log, bounds=bounds)
    tracemalloc.start()
    try:
        for step in cleaning.work():
            if isinstance(step, Replacement):
                assert put_in_place(log, step.old, step.cleaned)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < MAP_BYTES + MEBIBYTE, f"{peak_bytes} bytes"
    assert len(values(log)) == KEYS
    assert cleaning.figures.records_kept == KEYS


def test_no_slice_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = 0

    def counted(header: BatchHeader, batch: Buffer) -> Iterator[list[Entry]]:
        nonlocal pieces
        for piece in entries(header, batch):
            pieces += 1
            yield piece

    monkeypatch.setattr(run, "entries", counted)
    monkeypatch.setattr(retention, "entries", counted)
    log, in_slices = written(), list[int]()
    for _ in begin(log).work():
        in_slices.append(pieces)
        pieces = 0
    assert sum(in_slices) > 3 * RECORDS * VALUE_BYTES / (17 * 1024)
    # The first piece of each of the two batches counts with its records alone.
    assert max(in_slices) <= run.RECORDS_PER_SLICE / run.RECORDS_PER_PIECE_MIN + 2


def test_a_batch_of_one_piece_is_gone_through_once_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    log, seen = open_log(config=COMPACTED), list[int]()

    def counted(header: BatchHeader, batch: Buffer) -> Iterator[list[Entry]]:
        seen.append(header.base_offset)
        return entries(header, batch)

    monkeypatch.setattr(retention, "entries", counted)
    for codec in Compression:
        put(log, ("a", codec.name), (codec.name, "stays"), compression=codec)
    put(log, ("a", "newest"))
    roll(log)
    begun = begin(log)
    for step in begun.work():
        if isinstance(step, Replacement):
            assert put_in_place(log, step.old, step.cleaned)
    assert sorted(seen) == [0, 2, 4, 6, 8, 10]
    assert values(log) == [b"stays"] * len(Compression) + [b"newest"]
