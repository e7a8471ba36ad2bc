"""How much of a processor each file of tests takes: what a suite weighs, whatever else the machine does."""

import os
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pytest

#: Files that are named, those that take most first.
NAMED: Final = 8


class ProcessorTime:
    """A plugin of pytest that says it at the end. Processes count once they have ended, for the file where they do."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._spent = spent()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        now = spent()
        self._seconds[nodeid.partition("::")[0]] += now - self._spent
        self._spent = now

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(told(self._seconds, self._spent))


def spent() -> float:
    """Seconds of a processor that this process and those that it has waited for have taken."""
    return sum(os.times()[:4])


def told(seconds: Mapping[str, float], together: float) -> str:
    """One line."""
    most = ", ".join(f"{file} {seconds[file]:.1f}" for file in sorted(seconds, key=lambda file: -seconds[file])[:NAMED])
    return f"processor time: {together:.1f} s; most of it: {most}"
