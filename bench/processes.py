"""Processes that are certain to end.

Everything the bench starts is ended by its own id: at the end, on an exception, on Ctrl-C and on SIGTERM. Each has a
session of its own, so that a Ctrl-C in the terminal reaches the bench alone and the bench ends the rest in order.
"""

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_SECONDS_MAX = 30.0
AUTOGROUP_PAUSE_SECONDS = 0.15
CLIENT_SECONDS_MAX = 300.0
PROCESSES = Path("/proc")

_running: list[subprocess.Popen[bytes]] = []


class ClientError(RuntimeError):
    """A client command did not end well; the message carries the end of what it printed."""


def start(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a process in the background; its output goes to a file."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    _running.append(process)
    return process


def favour(nice: int, *pids: int) -> None:
    """Give this process, its clients and `pids` more of a machine that others use too.

    With the kernel's autogroups a nice value weighs only inside one session; this weighs whole sessions, the same for
    all. It needs root, and is left undone without a word where it cannot be done. The session of this process is that
    of the shell that called it: it weighs as before at the end, or whatever is called next would starve its nodes.
    """
    own = PROCESSES / str(os.getpid()) / "autogroup"
    with contextlib.suppress(OSError, IndexError):
        atexit.register(_weigh, own, own.read_text().split()[-1])
    for pid in (os.getpid(), *pids):
        _weigh(PROCESSES / str(pid) / "autogroup", str(nice))
        # The kernel refuses a second change that comes too soon.
        time.sleep(AUTOGROUP_PAUSE_SECONDS)


def _weigh(session: Path, nice: str) -> None:
    with contextlib.suppress(OSError):
        session.write_text(nice)


def stop(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> None:
    """End a process and wait until it is gone; by force where it does not end."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    with contextlib.suppress(ValueError):
        _running.remove(process)


def run(command: Sequence[str], *, timeout_seconds: float = CLIENT_SECONDS_MAX, check: bool = True) -> str:
    """Run a client to its end; what it printed. Without `check` its exit code is not looked at."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ClientError(f"{command[0]} did not end within {timeout_seconds:g} s") from error
    text = done.stdout.decode(errors="replace")
    if check and done.returncode != 0:
        raise ClientError(f"{' '.join(command)} ended with {done.returncode}:\n{text[-2000:]}")
    return text


def free_port() -> int:
    """A port on loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop_all() -> None:
    """End whatever still runs."""
    for process in _running[:]:
        stop(process)


def end_all_at_exit() -> None:
    """Make sure that nothing outlives this process, however it ends short of SIGKILL."""
    atexit.register(stop_all)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
