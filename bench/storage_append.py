"""What an append costs: microseconds of `Log.append_as_leader` by batch size, beside the floor of CRC and write.

    .venv/bin/python bench/storage_append.py [--directory DIR] [--rounds N]

The floor is what no broker can avoid: the CRC of the bytes and one `pwrite`. The difference is the price of the log.
"""

import argparse
import os
import tempfile
import time
from statistics import median

from crc32c import crc32c

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records.batch import set_base_offset
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.recovery import open_log

SIZES = {"100 B": 100, "16 KiB": 16 * 1024, "1 MiB": 1024 * 1024 - 4096}
BYTES_A_ROUND = 64 * 1024 * 1024
APPENDS_A_ROUND_MAX = 20_000


def batch_of(size: int, now_ms: int, producer_id: int = -1) -> bytearray:
    record_bytes = 1000
    overhead = 90
    count = max(1, (size - overhead) // (record_bytes + 12))
    value = bytes(max(1, (size - overhead) // count - 12))
    if producer_id < 0:
        return build_batch([(None, value)] * count, timestamp_ms=now_ms)
    return build_batch(
        [(None, value)] * count,
        timestamp_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )


def append_us(directory: str, size: int, *, idempotent: bool) -> float:
    now_ms = int(time.time() * 1000)
    log = open_log(RealDisk(), os.path.join(directory, f"bench-{size}"), LogConfig(), now_ms=now_ms)
    batch = memoryview(batch_of(size, now_ms))
    count = min(APPENDS_A_ROUND_MAX, BYTES_A_ROUND // len(batch))
    if idempotent:
        # A producer of its own for every batch: the look-up is paid for, the sequences need no new CRC.
        batches = [memoryview(batch_of(size, now_ms, producer)) for producer in range(min(count, 2000))]
    else:
        batches = [batch] * count
        for one in batches:
            set_base_offset(one, 0)
    append = log.append_as_leader
    start = time.perf_counter_ns()
    for one in batches:
        one[0:8] = bytes(8)
        append(one, 0, now_ms)
    elapsed = time.perf_counter_ns() - start
    log.abandon()
    clear(log.directory)
    return elapsed / len(batches) / 1000


def floor_us(directory: str, size: int) -> float:
    batch = memoryview(batch_of(size, 0))
    count = min(APPENDS_A_ROUND_MAX, BYTES_A_ROUND // len(batch))
    path = os.path.join(directory, "floor")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    start = time.perf_counter_ns()
    position = 0
    for _ in range(count):
        batch[0:8] = bytes(8)
        crc32c(batch[21:])
        position += os.pwrite(fd, batch, position)
    elapsed = time.perf_counter_ns() - start
    os.close(fd)
    os.unlink(path)
    return elapsed / count / 1000


def clear(directory: str) -> None:
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))
    os.rmdir(directory)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--directory", default=None)
    arguments.add_argument("--rounds", type=int, default=7)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        print(f"{'batch':>8} {'append us':>10} {'idempotent us':>14} {'floor us':>9} {'log us':>7}")
        for name, size in SIZES.items():
            rounds = [
                (
                    append_us(directory, size, idempotent=False),
                    append_us(directory, size, idempotent=True) if size < 100_000 else float("nan"),
                    floor_us(directory, size),
                )
                for _ in range(given.rounds)
            ]
            plain, idempotent, floor = (median(column) for column in zip(*rounds, strict=True))
            print(f"{name:>8} {plain:10.2f} {idempotent:14.2f} {floor:9.2f} {plain - floor:7.2f}")


if __name__ == "__main__":
    main()
