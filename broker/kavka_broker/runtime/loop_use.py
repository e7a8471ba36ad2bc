"""How busy the loop's thread has been of late, told from its CPU time at one scrape and at an earlier one."""

from time import monotonic, thread_time
from typing import Final

SPAN_SECONDS: Final = 30.0


class LoopUse:
    """Marks of the clock and of the thread's CPU time, at least `SPAN_SECONDS` apart. Used on the loop's thread."""

    def __init__(self, now_s: float | None = None, cpu_s: float | None = None) -> None:
        self._mark = self._before = (
            monotonic() if now_s is None else now_s,
            thread_time() if cpu_s is None else cpu_s,
        )

    def idle_ratio(self, now_s: float, cpu_s: float) -> float:
        """Return the share of the time without work, since the newest mark that is a span old; 1 at the beginning."""
        if now_s - self._mark[0] >= SPAN_SECONDS:
            self._before, self._mark = self._mark, (now_s, cpu_s)
        then_s, used_s = self._before
        return 1.0 if now_s <= then_s else min(1.0, max(0.0, 1 - (cpu_s - used_s) / (now_s - then_s)))
