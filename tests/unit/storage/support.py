"""A log on a simulated disk, and batches to put into it."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.loop.slices import Cost, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import BatchHeader, split_batches
from kavka_broker.protocol.records.record import Record, build_batch, read_records
from kavka_broker.storage import recovery
from kavka_broker.storage.log import Appended, Log, Origin
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.time_search import Found, find_by_timestamp, max_timestamp
from tests.support.sim_disk import SimDisk

NOW_MS = 1_000_000_000
DIRECTORY = "/data/orders-0"
SMALL = LogConfig(internal_segment_bytes=1000, index_interval_bytes=100)


def new_disk(**faults: Any) -> SimDisk:
    disk = SimDisk(now_ms=NOW_MS, **faults)
    disk.make_directory("/data")
    disk.sync_directory("/data")
    return disk


def open_log(disk: SimDisk | None = None, config: LogConfig = SMALL, **how: Any) -> Log:
    return recovery.open_log(disk or new_disk(), DIRECTORY, config, **{"now_ms": NOW_MS, **how})


def append(
    log: Log,
    *values: bytes,
    epoch: int = 0,
    now_ms: int = NOW_MS,
    timestamp_ms: int = NOW_MS,
    origin: Origin = Origin.CLIENT,
    **batch: Any,
) -> Appended:
    made = build_batch([(b"k", value) for value in values or (b"v",)], timestamp_ms=timestamp_ms, **batch)
    return log.append_as_leader(memoryview(made), epoch, now_ms, origin)


def fill(log: Log, count: int, size: int = 100, **how: Any) -> None:
    """`count` batches of one record; at 1000 bytes a segment, five of them fill one."""
    for index in range(count):
        append(log, b"%d" % index + b"x" * size, timestamp_ms=NOW_MS + index, **how)


def found_at(log: Log, timestamp_ms: int) -> Found | None:
    """What a search by time finds."""
    return at_once(find_by_timestamp(log, timestamp_ms, Cost()))


def youngest(log: Log) -> Found | None:
    return at_once(max_timestamp(log, Cost()))


def refusal(log: Log, batch: bytes | bytearray, **how: Any) -> ErrorCode:
    """With which code the log refuses the batch; nothing may have changed."""
    end, size = log.log_end_offset, log.size_bytes
    try:
        log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS, **how)
    except BrokerError as error:
        assert (log.log_end_offset, log.size_bytes) == (end, size)
        return error.code
    return ErrorCode.NONE


def headers(log: Log) -> list[BatchHeader]:
    return [header for segment in log.segments for _, header in segment.batches()]


def everything(log: Log, bytes_max: int = 500) -> list[Record]:
    """All records, read as a consumer would."""
    offset, found = log.log_start_offset, list[Record]()
    while offset < log.log_end_offset:
        chunk = log.read(offset, bytes_max)
        assert chunk.size_bytes == sum(map(len, chunk.parts)) > 0
        for part in chunk.parts:
            for header, batch in split_batches(part):
                found += [record for record in read_records(batch) if record.offset >= offset]
                offset = header.next_offset
    return found


def values(log: Log) -> list[bytes | None]:
    return [record.value for record in everything(log)]


def free(manager: LogManager) -> None:
    """Let the time of `file.delete.delay.ms` pass."""
    for now_ms in (NOW_MS, NOW_MS + SMALL.file_delete_delay_ms):
        manager.remove_deleted(now_ms)


def config(**changes: Any) -> LogConfig:
    return replace(SMALL, **changes)


def descriptors_of(directory: Path) -> list[str]:
    """Of this process, those of files in there. Others may go at any time, with the garbage of other tests."""
    found = list[str]()
    for one in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/fd/{one}").startswith(str(directory)):
                found.append(one)
    return found
