"""How much of a processor each file of tests takes: what a suite weighs, whatever else the machine does."""

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

#: Files that are named, those that take most first.
NAMED: Final = 8
PROC: Final = Path("/proc")
#: Of a line of `/proc/PID/stat`, behind the name of the program: the parent, and four times, as `os.times` has them.
PARENT: Final = 1
TIMES: Final = slice(11, 15)


class ProcessorTime:
    """A plugin of pytest that says it at the end. Tests of a file run one after the other, whatever the order."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._spent = spent()
        self._file = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        file = nodeid.partition("::")[0]
        if file != self._file:
            self._note()
            self._file = file

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self._note()
        terminalreporter.write_line(told(self._seconds, self._spent))

    def _note(self) -> None:
        """Count what was taken since the last time for the file that ran; collecting counts for none."""
        now = spent()
        self._seconds[self._file] += now - self._spent
        self._spent = now


def spent() -> float:
    """Seconds of a processor that this process, its descendants and those that ended and were waited for have taken."""
    return sum(os.times()[:4]) + sum(_taken_by_descendants(os.getpid(), _living()))


def _living() -> dict[int, tuple[int, float]]:
    """The parent and the seconds of each process; nothing where the kernel does not tell."""
    found = {}
    for entry in PROC.iterdir() if PROC.is_dir() else ():
        if entry.name.isdecimal():
            try:
                words = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # it has ended
            found[int(entry.name)] = int(words[PARENT]), sum(map(int, words[TIMES])) / os.sysconf("SC_CLK_TCK")
    return found


def _taken_by_descendants(process: int, living: Mapping[int, tuple[int, float]]) -> list[float]:
    children = [number for number, (parent, _) in living.items() if parent == process]
    return [seconds for child in children for seconds in (living[child][1], *_taken_by_descendants(child, living))]


def told(seconds: Mapping[str, float], together: float) -> str:
    """One line."""
    files = sorted(filter(None, seconds), key=lambda file: -seconds[file])
    most = ", ".join(f"{file} {seconds[file]:.1f}" for file in files[:NAMED])
    return f"processor time: {together:.1f} s; most of it: {most}"
