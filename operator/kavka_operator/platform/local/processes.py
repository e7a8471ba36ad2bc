"""Processes that this program starts, knows again, and stops; and no others.

A process is known by its pid together with its command line: a pid alone may have been given to somebody else in the
meantime, and a signal to a stranger cannot be taken back. On Linux the signal goes through a pidfd, which cannot be
confused even if the process ends between the check and the signal.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kavka_operator.platform.local import child_process

LOG_BYTES_MAX = 64 * 1024 * 1024
POLL_SECONDS = 0.02
PROC = Path("/proc")


def start(
    command: Sequence[str], log: Path, *, leashed: bool = True, log_bytes_max: int = LOG_BYTES_MAX
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, so that Ctrl-C in our terminal is ours to pass on.

    Output goes to `log`; one that is longer than `log_bytes_max` is put aside before.
    """
    if log.exists() and log.stat().st_size > log_bytes_max:
        log.replace(log.with_name(log.name + ".1"))
    tied = [sys.executable, "-I", "-S", child_process.__file__, str(os.getpid())] if leashed else []
    with log.open("ab") as output:
        return subprocess.Popen(
            [*tied, *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def command_line(pid: int) -> str:
    """The command of a process, words separated by blanks; empty where there is none."""
    if not PROC.exists():
        shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return shown.stdout.strip()
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def stop_known(pid: int, marks: Sequence[str], patience_seconds: float) -> bool:
    """Stop a process that is not our child, if its command line holds every one of `marks`. Whether there was one."""
    try:
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    except ProcessLookupError:
        return False
    try:
        line = command_line(pid)
        if not all(mark in line for mark in marks):
            return False
        _send(pid, handle, signal.SIGTERM)
        if not _ended(pid, handle, patience_seconds):
            _send(pid, handle, signal.SIGKILL)
            _ended(pid, handle, patience_seconds)
        return True
    finally:
        if handle >= 0:
            os.close(handle)


def stop_children(children: Sequence[subprocess.Popen[Any]], patience_seconds: float) -> None:
    """Ask all children to end, wait for all together, and kill those that do not end."""
    for child in children:
        child.terminate()
    deadline = time.monotonic() + patience_seconds
    try:
        for child in children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()


def _send(pid: int, handle: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)


def _ended(pid: int, handle: int, patience_seconds: float) -> bool:
    if handle >= 0:
        readable, _, _ = select.select([handle], [], [], patience_seconds)
        return bool(readable)
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        if not command_line(pid):
            return True
        time.sleep(POLL_SECONDS)
    return False


def tail(log: Path, lines_max: int = 5) -> str:
    """The last lines of a log, for a message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-lines_max:])
