"""A search by time looks at no more than it needs, a slice at a time, and notices what happens in between."""

import tracemalloc
from collections.abc import Iterator
from struct import pack_into

import pytest

from kavka_broker.loop.slices import COST_PER_SLICE, COST_PER_YIELD, Cost, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import HEADER_BYTES, BatchHeader, set_crc
from kavka_broker.protocol.records.compression import Buffer, Compression, compress
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.protocol.records.scan import Seen, scan
from kavka_broker.storage import time_search
from kavka_broker.storage.log import Log, Origin
from kavka_broker.storage.retention import delete_expired
from kavka_broker.storage.time_search import find_by_timestamp
from tests.unit.storage.support import NOW_MS, append, config, fill, found_at, open_log, youngest

pytestmark = pytest.mark.thorough

SMALLEST = bytes([12, 0, 0, 0, 1, 1, 0])  # a record without key, value and headers
MANY = 100_000


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records were looked at before each yield."""
    counts = list[int]()

    def counted(header: BatchHeader, batch: Buffer) -> Iterator[list[Seen]]:
        for some in scan(header, batch):
            counts.append(len(some))
            yield some

    monkeypatch.setattr(time_search, "scan", counted)
    return counts


def made_up(count: int, max_timestamp_ms: int) -> bytearray:
    """A batch of some hundred bytes with so many records of NOW_MS."""
    body = compress(Compression.ZSTD, SMALLEST * count)
    batch = bytearray(build_batch([(None, b"")], timestamp_ms=NOW_MS)[:HEADER_BYTES]) + body
    pack_into(">i", batch, 8, len(batch) - 12)
    pack_into(">hi", batch, 21, Compression.ZSTD, count - 1)
    pack_into(">q", batch, 35, max_timestamp_ms)
    pack_into(">i", batch, 57, count)
    set_crc(batch)
    return batch


def with_bomb(max_timestamp_ms: int = NOW_MS) -> Log:
    log = open_log(config=config(internal_segment_bytes=1_000_000))
    log.append_as_leader(memoryview(made_up(MANY, max_timestamp_ms)), 0, NOW_MS, Origin.COORDINATOR)
    return log


def test_it_stops_at_the_first_record_that_fits(seen: list[int]) -> None:
    log = with_bomb()
    assert found_at(log, NOW_MS) == youngest(log) == (0, NOW_MS, 0)
    assert len(seen) == 2
    assert sum(seen) < MANY // 20


def test_a_header_that_lies_costs_slices_and_little_memory(seen: list[int]) -> None:
    log = with_bomb(max_timestamp_ms=NOW_MS + 1_000)
    work = find_by_timestamp(log, NOW_MS + 1, Cost())
    per_yield = list[int]()
    tracemalloc.start()
    try:
        done = False
        while not done:
            before = sum(seen)
            done = next(work, work) is work
            per_yield.append(sum(seen) - before)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(per_yield) == MANY
    assert max(per_yield) <= COST_PER_SLICE
    assert peak_bytes < 2 << 20


def test_searches_that_find_at_once_count_as_well() -> None:
    log, cost = with_bomb(), Cost()
    yields = sum(
        1 for _ in range(COST_PER_SLICE // time_search.UNPACKING_COST) for _ in find_by_timestamp(log, 0, cost)
    )
    assert yields >= 2


def test_many_batches_are_searched_in_slices() -> None:
    log = open_log(config=config(internal_segment_bytes=1_000_000, index_interval_bytes=1_000_000))
    fill(log, 3 * COST_PER_YIELD // time_search.HEADER_COST, size=1)
    yields = sum(1 for _ in find_by_timestamp(log, log.segments[0].largest.timestamp_ms, Cost()))
    assert yields in (2, 3)


def test_one_that_stops_leading_meanwhile_sends_the_client_elsewhere() -> None:
    log = with_bomb(max_timestamp_ms=NOW_MS + 1_000)
    work = find_by_timestamp(log, NOW_MS + 1, Cost())
    next(work)
    log.truncate_to(0)
    with pytest.raises(BrokerError) as caught:
        at_once(work)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_segment_that_retention_takes_meanwhile_does_not_count() -> None:
    log = open_log(config=config(internal_segment_bytes=1_000_000, retention_ms=1_000))
    log.append_as_leader(memoryview(made_up(MANY, NOW_MS + 500)), 0, NOW_MS, Origin.COORDINATOR)
    log.roll(NOW_MS)
    append(log, b"young", timestamp_ms=NOW_MS + 10_000)
    work = find_by_timestamp(log, NOW_MS + 1, Cost())
    next(work)
    assert delete_expired(log, NOW_MS + 5_000, log.log_end_offset)
    assert at_once(work) == (MANY, NOW_MS + 10_000, 0)
