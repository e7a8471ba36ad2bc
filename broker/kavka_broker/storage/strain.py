"""Whether the kernel holds back who makes pages of a disk dirty, told from a write that only waited for a processor.

Linux lets writers run free until as many pages wait to be written as lie halfway between the number where it begins to
write them and the number that it allows. From there on whoever dirties a page is made to sleep inside the call. That
holds for all pages of the machine, and in a control group with a bound on its memory for those of the group as well.

A write may take as long without that: its thread was preempted, or waited for the interpreter. So a write that waited
is only the occasion to count dirty pages, and what they amount to decides. Where the kernel does not tell, the write
has to do as a sign.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

HELD_SECONDS_MIN: Final = 0.005
"""The kernel holds a writer back for 10 ms and more at a time, and a copy of a megabyte takes a fraction of one."""
STRAINED_SECONDS: Final = 2.0
"""Strain ends so long after the last that was held back, at the latest."""
LOOK_SECONDS: Final = 0.25
"""Counting takes a tenth of a millisecond."""
NEAR_SHARE: Final = 0.8
"""Of the pages from which on writers are held back: more of them are dirty before the next look."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_RATIOS: Final = (20, 10)  # Linux's own, where bytes are set in place of percent


class DirtyPages(NamedTuple):
    """What waits to be written, of a machine or a control group, and from where on its writers are held back."""

    dirty_bytes: int
    held_from_bytes: int


class Seen(NamedTuple):
    """What there is to judge by. `pages` is empty where the kernel does not tell."""

    waited_seconds: float  # the longest that a write waited since the last look, without its time on a processor
    quiet_seconds: float  # since a write last waited for long
    pages: Sequence[DirtyPages]


def is_strained(before: bool, seen: Seen) -> bool:
    """Whether large writes are held back, where so they were `before` or not."""
    if seen.pages and all(pages.dirty_bytes < NEAR_SHARE * pages.held_from_bytes for pages in seen.pages):
        return False
    return seen.waited_seconds >= HELD_SECONDS_MIN or (before and seen.quiet_seconds < STRAINED_SECONDS)


class Strain:
    """Strain of a disk, by the rule of `is_strained`."""

    __slots__ = ("_count", "_held_at", "_is_felt", "_looked_at", "_processor", "_waited", "clock")

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.thread_time,
        count: Callable[[], Sequence[DirtyPages]] | None = None,
    ) -> None:
        self.clock = clock
        self._processor = processor
        self._count = count_dirty_pages if count is None else count
        self._is_felt = False
        self._looked_at = self._held_at = float("-inf")
        self._waited = 0.0

    @property
    def is_felt(self) -> bool:
        if self._is_felt and self.clock() - self._looked_at >= LOOK_SECONDS:
            self._look()
        return self._is_felt

    def begin(self) -> float:
        """A time to give to `note`, in the same thread: what the clock is ahead of the thread's time on a processor."""
        return self.clock() - self._processor()

    def note(self, began: float) -> None:
        """Take in that a large write has ended just now, or room for one was made."""
        now = self.clock()
        waited = now - self._processor() - began
        if waited < HELD_SECONDS_MIN:
            return
        self._held_at, self._waited = now, max(self._waited, waited)
        if now - self._looked_at >= LOOK_SECONDS:
            self._look()

    def _look(self) -> None:
        now = self.clock()
        self._is_felt = is_strained(self._is_felt, Seen(self._waited, now - self._held_at, self._count()))
        self._looked_at, self._waited = now, 0.0


def count_dirty_pages() -> list[DirtyPages]:
    """The dirty pages of the machine, and of this process's control group; nothing where the kernel does not tell."""
    machine = of_machine(_lines("/proc/vmstat"))
    if machine is None:
        return []
    ratios = _number("/proc/sys/vm/dirty_ratio"), _number("/proc/sys/vm/dirty_background_ratio")
    group = f"/sys/fs/cgroup{_GROUP}" if _GROUP is not None else ""
    own = None
    if group and (bound := _number(f"{group}/memory.max")):
        own = of_group(_lines(f"{group}/memory.stat"), bound, _number(f"{group}/memory.current"), *ratios)
    return [machine] if own is None else [machine, own]


def of_machine(lines: dict[str, int]) -> DirtyPages | None:
    """What `/proc/vmstat` tells."""
    try:
        dirty = lines["nr_dirty"] + lines["nr_writeback"]
        held_from = (lines["nr_dirty_threshold"] + lines["nr_dirty_background_threshold"]) // 2
    except KeyError:
        return None
    return DirtyPages(dirty * _PAGE_BYTES, held_from * _PAGE_BYTES)


def of_group(
    lines: dict[str, int], bound_bytes: int, used_bytes: int, ratio: int, background_ratio: int
) -> DirtyPages | None:
    """What a control group's `memory.stat` tells: it may have the machine's shares of what it may still fill dirty."""
    try:
        dirty = lines["file_dirty"] + lines["file_writeback"]
        available = max(0, bound_bytes - used_bytes) + lines["inactive_file"] + lines["active_file"]
    except KeyError:
        return None
    if not ratio or not background_ratio:
        ratio, background_ratio = _RATIOS
    return DirtyPages(dirty, available * (ratio + background_ratio) // 200)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _number(path: str) -> int:
    """The number in a file; 0 where there is none, or `max`."""
    text = _text(path).strip()
    return int(text) if text.isdecimal() else 0


def _lines(path: str) -> dict[str, int]:
    found = {}
    for line in _text(path).splitlines():
        name, _, number = line.partition(" ")
        if number.isdecimal():
            found[name] = int(number)
    return found


def own_group(text: str) -> str | None:
    """The path of the control group in `/proc/self/cgroup`, of the second version; None where there is none."""
    return next((line.removeprefix("0::").rstrip("/") for line in text.splitlines() if line.startswith("0::")), None)


_GROUP: Final = own_group(_text("/proc/self/cgroup"))
