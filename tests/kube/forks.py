"""`python -m tests.kube.forks`: a process that has imported the operator, and forks one wherever a test starts one.

An operator of its own imports for two seconds of a processor, and tests start a hundred of them. Each has its own
settings, log and process; what it imports is the same for all, and nothing of it has run before the fork. A line of
standard input says what to start, one of standard output which process it is, and the next of standard input that a
descriptor of it is open. How a process ended is written where
the line said, as only its parent can be told.
"""

import contextlib
import gc
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kubernetes.aio import config
from kubernetes.aio.config import kube_config

from tests.kube import operating

WRITTEN_SECONDS_MAX = 10.0
POLL_SECONDS = 0.001
ASKING = threading.Lock()
OPENED = "opened\n"
"""The line of standard input by which the process that forks may wait for the operator's end: before, its id could be
of nothing any more, or of another process.
"""


@dataclass(slots=True)
class Operator:
    """An operator that was forked, as if it were a `subprocess.Popen`."""

    pid: int
    ended: Path
    descriptor: int = field(init=False)

    def __post_init__(self) -> None:
        self.descriptor = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return how it ended, None while it runs."""
        return int(self.ended.read_text()) if self.ended.exists() else None

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Return how it ended. Raises subprocess.TimeoutExpired."""
        if not select.select([self.descriptor], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self), timeout)
        deadline = time.monotonic() + WRITTEN_SECONDS_MAX
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, f"nobody says how {self} ended"
            time.sleep(POLL_SECONDS)
        return code

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, number)


def start(arguments: Sequence[str], environment: dict[str, str], log: Path) -> Operator:
    """Start an operator whose output goes to the end of a file. Several threads may do so at once."""
    ended = log.with_name(f"{log.name}.{time.monotonic_ns()}.ended")
    asked = {"arguments": [*arguments], "environment": environment, "log": str(log), "ended": str(ended)}
    with ASKING:
        forks = _forks()
        assert forks.stdin is not None
        assert forks.stdout is not None
        forks.stdin.write(json.dumps(asked) + "\n")
        forks.stdin.flush()
        operator = Operator(int(forks.stdout.readline()), ended)
        forks.stdin.write(OPENED)
        forks.stdin.flush()
        return operator


def end() -> None:
    """End the process that forks, if there is one; all of its operators have ended."""
    if _forks.cache_info().currsize:
        forks = _forks()
        forks.communicate()
        _forks.cache_clear()


@cache
def _forks() -> "subprocess.Popen[str]":
    line = [sys.executable, "-m", "tests.kube.forks"]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# --- in the process that forks --------------------------------------------------------------------------------------


def main() -> None:
    """Fork what each line of standard input says."""
    gc.collect()
    gc.freeze()
    running: dict[int, Path] = {}
    signal.signal(signal.SIGCHLD, lambda *_: note_ended(running))
    for line in sys.stdin:
        asked = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until who asked has a descriptor of it
        pid = os.fork()
        if pid == 0:
            be_operator(asked)
        running[pid] = Path(asked["ended"])
        print(pid, flush=True)
        assert sys.stdin.readline() in {OPENED, ""}, "the next operator is asked for before the last is known"
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def note_ended(running: dict[int, Path]) -> None:
    """Write down how those have ended that have."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        place = running.pop(pid)
        part = place.with_suffix(".part")
        part.write_text(str(os.waitstatus_to_exitcode(status)))
        part.rename(place)


def be_operator(asked: dict[str, Any]) -> None:
    """Run the operator in this process, and end it."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(asked["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for there, here in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(there, here)
        os.environ.clear()
        os.environ.update(asked["environment"])
        random.seed()
        for module in (config, kube_config):  # they asked for it as they were imported
            module.KUBE_CONFIG_DEFAULT_LOCATION = os.environ["KUBECONFIG"]
        bootstrap, *last = asked["arguments"]
        operating.main(bootstrap, int(last[0]) if last else None)
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - as Python itself does at the end of a process
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
