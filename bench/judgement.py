"""What a leader's look at the records of a batch costs: nanoseconds a record, by how much they are alike.

The second number is that of a compressed batch, whose offset deltas are looked at too; unpacking it is not in it.

    .venv/bin/python -m bench.judgement

CPU time of the thread, the least of several rounds. The broker looks at a batch on the loop where that takes few steps;
where it would not, the line says so.
"""

import random
import time
from collections.abc import Iterator
from typing import Final

from kavka_broker.protocol.records.batch import HEADER_BYTES
from kavka_broker.protocol.records.batch_validation import TooLong, time_span
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.storage.record_check import steps_on_loop

START_MS: Final = 1_000_000
RECORDS_A_ROUND: Final = 20_000
HEADERS: Final = [("traceparent", bytes(55)), ("b", b"c")]


def batches() -> Iterator[tuple[str, list[Record]]]:
    draw = random.Random(2)
    yield "9,000 alike, of 3 ms", [Record(i, START_MS + i // 3000, None, bytes(100)) for i in range(9000)]
    yield "9,000 alike, 1 ms apart", [Record(i, START_MS + i, None, bytes(100)) for i in range(9000)]
    yield "5,000 alike, two headers", [Record(i, START_MS + i // 7, None, bytes(100), HEADERS) for i in range(5000)]
    yield "150 alike", [Record(i, START_MS + i // 7, None, bytes(100)) for i in range(150)]
    yield "1", [Record(0, START_MS, None, bytes(100))]
    yield "4,000 of two sizes", [Record(i, START_MS, b"k", bytes(draw.choice((70, 71)))) for i in range(4000)]
    yield "4,000 of 100 sizes", [Record(i, START_MS + i // 7, b"k", bytes(draw.randint(50, 149))) for i in range(4000)]


def least_ns(data: bytes, count: int, *, is_numbered: bool) -> int:
    """The CPU time of one look at all records."""
    least = 1 << 62
    for _ in range(max(5, RECORDS_A_ROUND // count)):
        started = time.thread_time_ns()
        time_span(data, count, is_numbered=is_numbered)
        least = min(least, time.thread_time_ns() - started)
    return least


def is_on_loop(data: bytes, count: int) -> bool:
    try:
        time_span(data, count, steps_on_loop(count))
    except TooLong:
        return False
    return True


def main() -> None:
    print(f"{'records':26} {'ns each':>8} {'compressed':>10} {'us in all':>10}")
    for name, records in batches():
        data = bytes(build_batch(records))[HEADER_BYTES:]
        taken, packed = (least_ns(data, len(records), is_numbered=one) for one in (False, True))
        where = "" if is_on_loop(data, len(records)) else "  in a thread"
        each, packed_each = taken / len(records), packed / len(records)
        print(f"{name:26} {each:8.0f} {packed_each:10.0f} {taken / 1000:10.1f}{where}")


if __name__ == "__main__":
    main()
