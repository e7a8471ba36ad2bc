"""The operating system's clocks. The only place of the broker that reads them."""

import time
from typing import Final

#: Nanoseconds from an arbitrary start, to measure work with.
work_ns: Final = time.perf_counter_ns

#: Nanoseconds of CPU time that the calling thread has had.
thread_ns: Final = time.thread_time_ns


class SystemClock:
    """Wall time and monotonic time of this machine."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000
