"""Whether the kernel is about to hold back who makes pages of a disk dirty, told from how many wait to be written.

Linux lets writers run free until as many pages wait to be written as lie halfway between the number where it begins to
write them and the number that it allows. From there on whoever dirties a page is made to sleep inside the call. That
holds for all pages of the machine, and in a control group with a bound on its memory for those of the group as well.

So pages are counted while large writes come: often enough that those in between cannot use up what the last count left.
Where a broker's own writes fill the disk, those that wait for it keep the kernel from ever holding the loop back. Where
others fill it, waiting would not end: strain then lasts, and a thread makes room (`storage.preallocation`).

A write's own time is no sign: it is long as well where its thread was preempted, or waited for the interpreter. Where
the kernel does not tell, there is no strain.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

LOOK_SECONDS: Final = 0.25
"""Between two counts, each of which takes a tenth of a millisecond, where much is left."""
STRAINED_LOOK_SECONDS: Final = 0.01
"""Between two counts while there is strain."""
LASTING_SECONDS: Final = 0.5
"""Strain that has gone on for so long is not of the broker's own making: its large writes wait meanwhile."""
UNKNOWN_BYTES: Final = 1 << 62
"""What is left where the kernel does not tell."""
NEAR_SHARE: Final = 0.8
"""Of the pages from which on writers are held back: small writes, followers and other programs take the rest."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_RATIOS: Final = (20, 10)  # Linux's own, where bytes are set in place of percent
_NEVER: Final = float("-inf")


class DirtyPages(NamedTuple):
    """What waits to be written, of a machine or a control group, and from where on its writers are held back."""

    dirty_bytes: int
    held_from_bytes: int

    @property
    def left_bytes(self) -> int:
        """How much more may be made dirty before there is strain; 0 or less where there is."""
        return int(NEAR_SHARE * self.held_from_bytes) - self.dirty_bytes


class Strain:
    """Strain of a disk: begins when no more may be made dirty, ends at the first count after which more may."""

    __slots__ = ("_began_at", "_clock", "_count", "_left_bytes", "_looked_at")

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        count: Callable[[], Sequence[DirtyPages]] | None = None,
    ) -> None:
        self._clock = clock
        self._count = count_dirty_pages if count is None else count
        self._left_bytes = 0
        self._looked_at = _NEVER
        self._began_at: float | None = None

    @property
    def is_felt(self) -> bool:
        """Whether large writes are to wait. Looks where it is time to."""
        now = self._clock()
        if now - self._looked_at >= (LOOK_SECONDS if self._left_bytes > 0 else STRAINED_LOOK_SECONDS):
            self._look(now)
        return self._left_bytes <= 0

    @property
    def lasts(self) -> bool:
        """Whether no count of the last `LASTING_SECONDS` was without strain."""
        return self.is_felt and self._began_at is not None and self._looked_at - self._began_at >= LASTING_SECONDS

    def wrote(self, size_bytes: int) -> None:
        """Take in that so many bytes of clean pages were made dirty. For threads too."""
        self._left_bytes -= size_bytes

    def _look(self, now: float) -> None:
        self._looked_at = now
        self._left_bytes = min((pages.left_bytes for pages in self._count()), default=UNKNOWN_BYTES)
        if self._left_bytes > 0:
            self._began_at = None
        elif self._began_at is None:
            self._began_at = now


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
