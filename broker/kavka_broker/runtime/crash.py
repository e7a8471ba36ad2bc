"""What a failed assertion does: the process says what failed and where, writes it down, and ends.

It ends at once and without a clean stop, so that the next start recovers from what is on disk instead of trusting what
was in memory. The report goes to the log as `broker.crashed` with its traceback, and as a line of JSON into the file
`failed-assertions` of the metadata log's directory, whose last line says how many there have been: a restarted broker
counts on from there in `/metrics`. The file holds the last `REPORTS_MAX`.
"""

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Final, NoReturn

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.logs import get

log = get("runtime")

EXIT_CRASH: Final = 70  # EX_SOFTWARE
FILE_NAME: Final = "failed-assertions"
REPORTS_MAX: Final = 20
#: Largest file that is taken for one of ours.
FILE_BYTES_MAX: Final = 1 << 20
TEXT_CHARACTERS_MAX: Final = 1_000
TELL: Final = "this is a defect of Kavka: open an issue with this report and the lines before it"

Facts = Callable[[], Mapping[str, object]]


class Crash:
    """Ends the process for an error when it is called. `failed_total` counts the assertions that have failed on
    this node before; `facts` gives what is worth knowing of it.
    """

    def __init__(self, config: BrokerConfig, end: Callable[[int], NoReturn] = os._exit) -> None:
        self._end = end
        self._path = os.path.join(config.metadata_log_dir, FILE_NAME)
        self._who = {"node": config.node_id, "version": version("kavka-broker"), "python": platform.python_version()}
        self._lines = read_lines(self._path)
        self.failed_total = count_of(self._lines)
        self.facts: Facts = dict

    def __call__(self, error: BaseException) -> NoReturn:
        """Log the error, write a failed assertion down, and end the process."""
        try:
            report = {"where": where(error), **self._who, **self._facts()}
            if isinstance(error, AssertionError):
                report |= {"failed_total": self.failed_total + 1, "tell": TELL}
            log.exception("broker.crashed", error, **report)
            if isinstance(error, AssertionError):
                self._write({"time_ms": time.time_ns() // 1_000_000, "what": words_of(error), **report})
            sys.stderr.flush()
        finally:
            self._end(EXIT_CRASH)

    def _facts(self) -> Mapping[str, object]:
        """Return what the node can still say of itself; anything may be broken here too."""
        try:
            return self.facts()
        except Exception as problem:  # noqa: BLE001 - the report is worth more without them than not at all
            return {"facts": repr(problem)}

    def _write(self, report: Mapping[str, object]) -> None:
        """Write the report. A disk that is full or gone must not keep the process from ending."""
        lines = [*self._lines, json.dumps(report, default=str)][-REPORTS_MAX:]
        with suppress(OSError):
            with open(f"{self._path}.tmp", "w", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{self._path}.tmp", self._path)


def read_lines(path: str) -> list[str]:
    """Return the reports of former runs; none where they cannot be read."""
    with suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
        return file.read(FILE_BYTES_MAX).splitlines()[-REPORTS_MAX:]
    return []


def count_of(lines: list[str]) -> int:
    """Return how many assertions have failed, by the last report."""
    with suppress(ValueError, KeyError, TypeError, IndexError):
        return max(0, int(json.loads(lines[-1])["failed_total"]))
    return len(lines)


def where(error: BaseException) -> str:
    """Return file, line and function of the code that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    last = frames[-1]
    return f"{last.filename.rpartition('/kavka_broker/')[2]}:{last.lineno} {last.name}"


def words_of(error: BaseException) -> str:
    """Return the error's message; without one, the line that failed."""
    frames = traceback.extract_tb(error.__traceback__)
    text = str(error) or (frames[-1].line if frames else "") or ""
    return f"{type(error).__name__}: {text}"[:TEXT_CHARACTERS_MAX]
