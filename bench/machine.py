"""What a run costs, read from /proc.

The CPU of a broker is the user and system time of its process and of everything it started. The CPU of the clients is
that of this process and of the children it has waited for. What is left of the machine's busy time was burnt by others:
that column says how far a figure can be trusted, because on a loaded machine the two brokers did not have the same
conditions, alternate as they may.
"""

import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU time of a process and its children, in seconds."""

    user: float = 0.0
    system: float = 0.0

    @property
    def total(self) -> float:
        return self.user + self.system

    def __add__(self, other: "Cpu") -> "Cpu":
        return Cpu(self.user + other.user, self.system + other.system)

    def __sub__(self, other: "Cpu") -> "Cpu":
        return Cpu(self.user - other.user, self.system - other.system)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one measured stretch took: of the clock, of the broker, of the clients, of everyone else on the machine."""

    wall_seconds: float
    broker: Cpu
    client_seconds: float
    others_seconds: float

    @property
    def others_cores(self) -> float:
        return self.others_seconds / self.wall_seconds if self.wall_seconds else 0.0


def parse_stat(text: str) -> Cpu:
    """The times in a line of /proc/PID/stat, with those of children that ended.

    The name may hold spaces and brackets.
    """
    fields = text.rpartition(")")[2].split()
    user, system, children_user, children_system = (int(field) / TICKS_PER_SECOND for field in fields[11:15])
    return Cpu(user + children_user, system + children_system)


def parse_busy(text: str) -> float:
    """Seconds of all cores that were not idle, from the text of /proc/stat."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(f) for f in text.split(None, 9)[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def cpu_of(pid: int) -> Cpu:
    """CPU time of a process, its threads, and its children, running or ended."""
    total = parse_stat((PROC / str(pid) / "stat").read_text())
    for child in children_of(pid):
        total += cpu_of(child)
    return total


def children_of(pid: int) -> list[int]:
    """The running children of a process. A thread may end while it is looked at."""
    found: list[int] = []
    for listing in PROC.glob(f"{pid}/task/*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.extend(int(child) for child in listing.read_text().split())
    return found


def rss_bytes(pid: int) -> int:
    """Resident memory of a process and its children."""
    pages = int((PROC / str(pid) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(rss_bytes(child) for child in children_of(pid))


def _own_seconds() -> float:
    usages = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Meter:
    """Measures the stretch inside a `with`; `cost` is there afterwards."""

    cost: Cost

    def __init__(self, *pids: int) -> None:
        self._pids = pids

    def __enter__(self) -> Self:
        self._busy = parse_busy((PROC / "stat").read_text())
        self._own = _own_seconds()
        self._brokers = self._cpu()
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._started
        broker = self._cpu() - self._brokers
        clients = _own_seconds() - self._own
        busy = parse_busy((PROC / "stat").read_text()) - self._busy
        self.cost = Cost(wall, broker, clients, max(0.0, busy - broker.total - clients))

    def _cpu(self) -> Cpu:
        return sum((cpu_of(pid) for pid in self._pids), start=Cpu())


def describe() -> dict[str, object]:
    """What the figures were taken on."""
    lines = (PROC / "cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    system = os.uname()
    return {
        "cpu": models[0] if models else "unknown",
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "kernel": f"{system.sysname} {system.release}",
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }
